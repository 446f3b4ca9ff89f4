"""Packages without the credentials of the channels that they were built on: engines write those into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.redaction import redacted

#: The files of a package that name the channels of its build.
_DOCUMENTS = (
    "info/about.json",
    "info/recipe/conda_build_config.yaml",
    "info/recipe/meta.yaml",
    "info/recipe/rendered_recipe.yaml",
    "info/recipe/variant_config.yaml",
)


def hide_credentials(package: Path, channels: Sequence[str]) -> bool:
    """Put stars in place of users, passwords and tokens in the URLs of a package's metadata.

    Args:
        channels: the URLs that the package was built with; without credentials there is nothing to hide.

    Returns:
        Whether the package has changed.

    Raises:
        WorkError: the package cannot be read or written.
    """
    if all(redacted(url) == url for url in channels):
        return False
    from feedstock_tools.channel.archive import read_documents, replace_document

    changed = False
    for name, content in read_documents(package, _DOCUMENTS).items():
        if content is None:
            continue
        plain = redacted(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if plain != content:
            replace_document(package, name, plain)
            changed = True
    return changed
