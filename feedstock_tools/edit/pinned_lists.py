"""The pinning's lists of versions, copied into the variant file of a recipe, so that it can list others."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.edit.document import Document, read_document
from feedstock_tools.edit.draft import Draft
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import parse

__all__ = ["VARIANT_FILES", "are_even", "with_pinned_lists", "zip_group"]

#: The platforms that pinnings have lists for, and where conda-forge builds them.
_PLATFORMS = ("linux-64", "linux-aarch64", "linux-ppc64le", "osx-64", "osx-arm64", "win-64")

#: The variant files of a recipe that list values.
VARIANT_FILES = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")


def zip_group(document: Document, key: str) -> frozenset[str]:
    """The keys that a variant file zips with a key; empty if it does not say."""
    for entry in document.entries("zip_keys"):
        for group in entry.value.items or ():
            names = {item.text for item in group.items} or {item.text for item in entry.value.items}
            if key in names:
                return frozenset(names - {key})
    return frozenset()


def with_pinned_lists(draft: Draft, key: str, pinning: Path) -> tuple[Document, frozenset[str]] | None:
    """The recipe's `conda_build_config.yaml` with the pinning's list of a key and those zipped with it at its end; and
    their keys.

    Text is copied, with comments and selectors. None if the pinning lists no values of the key.
    """
    pinned = read_document(pinning, within=None)
    group = zip_group(pinned, key)
    found = [entry for name in (key, *sorted(group)) for entry in pinned.entries(name) if entry.value.items]
    if not any(entry.key == key for entry in found):
        return None
    spans = sorted({(pinned.line_start(entry.start), pinned.line_end(entry.end - 1)) for entry in found})
    own = draft.file(VARIANT_FILES[0]) or Document(draft.folder / VARIANT_FILES[0], "")
    breaks = "" if own.text.endswith(("\n", "\r")) or not own.text else own.newline
    copied = own.newline.join("\n".join(pinned.text[start:end] for start, end in spans).splitlines())
    return Document(own.path, f"{own.text}{breaks}{copied}{own.newline}"), frozenset(entry.key for entry in found)


def are_even(document: Document, keys: frozenset[str]) -> bool:
    """Whether the lists of some keys in a variant file have as many values as each other on every platform."""
    for name in _PLATFORMS:
        environ = {"CF_CUDA_ENABLED": "True", "BUILD_PLATFORM": name, "CONFIG_VERSION": "1"}
        try:
            config = parse(document.text, document.path, Platform.parse(name), environ=environ)
        except InputError:
            return False
        if len({len(config.values[key]) for key in keys if key in config.values}) > 1:
            return False
    return True
