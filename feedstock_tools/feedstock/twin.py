"""The recipe that a build reads: the feedstock's own `recipe.yaml`, or for a `meta.yaml` that of the feedstock's twin.

The twin is a folder in the artifacts folder's cache that looks like the feedstock, with a `recipe.yaml` in place of the
`meta.yaml`: generated from the same spec, or without a spec converted from the `meta.yaml`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import temporary_folder

_TWIN = "recipe-v1"
#: The file in a twin with the digest of the files that it was made from.
_INPUTS = ".made-from"


def recipe_to_build(feedstock: Feedstock, artifacts: Artifacts, engine: str | None = None) -> Path:
    """The `recipe.yaml` to build: the feedstock's own, or, for a `meta.yaml`, one generated from the spec.

    With conda-build or the feedstock's own scripts it is always the feedstock's own: there is no
    such file if it has a `meta.yaml`.
    """
    own = feedstock.recipe / "recipe.yaml"
    as_it_is = engine == "conda-build" or (engine == "container" and (feedstock.folder / ".scripts").is_dir())
    needs_twin = has_meta_alone(feedstock) and feedstock.spec.is_file() and not as_it_is
    return recipe_of_twin(artifacts) if needs_twin else own


def has_meta_alone(feedstock: Feedstock) -> bool:
    """Whether the recipe is a `meta.yaml`."""
    return (feedstock.recipe / "meta.yaml").is_file() and not (feedstock.recipe / "recipe.yaml").is_file()


def recipe_of_twin(artifacts: Artifacts) -> Path:
    """The recipe of the twin, whether there is one or not."""
    return _twin(artifacts) / "recipe" / "recipe.yaml"


def is_twin(recipe: Path, artifacts: Artifacts) -> bool:
    """Whether a recipe to build is that of the twin."""
    return recipe.is_relative_to(_twin(artifacts))


def twin_inputs(artifacts: Artifacts) -> str | None:
    """The digest of the files that the twin was made from; None without a twin."""
    with suppress(OSError, UnicodeDecodeError):
        return (_twin(artifacts) / _INPUTS).read_text(encoding="utf-8")
    return None


def make_twin(feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str], inputs: str) -> None:
    """Make the twin of a feedstock, or replace it.

    Args:
        texts: the files of the v1 form, by their path in the feedstock.
        inputs: a value that changes with the files that it is made from.

    Raises:
        WorkError: it cannot be written.
    """
    twin = _twin(artifacts)
    try:
        twin.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(twin.parent) as new:
            _fill(new, feedstock, artifacts, texts)
            (new / _INPUTS).write_text(inputs, encoding="utf-8")
            shutil.rmtree(twin, ignore_errors=True)
            new.rename(twin)
    except OSError as error:
        raise WorkError(f"cannot write the recipe to build: {error.strerror or error}", path=twin) from error


def _fill(new: Path, feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str]) -> None:
    """Links to everything in the feedstock but the recipe, which is copied with the generated files in it."""
    for entry in feedstock.folder.iterdir():
        if entry != feedstock.recipe and not entry.name.startswith(".") and entry != artifacts.root:
            (new / entry.name).symlink_to(entry)
    shutil.copytree(feedstock.recipe, new / "recipe", ignore=shutil.ignore_patterns("meta.yaml"))
    for path, text in texts.items():
        if path.parts[0] == "recipe":
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_text(text, encoding="utf-8")


def _twin(artifacts: Artifacts) -> Path:
    return artifacts.cache / _TWIN
