"""A feedstock as a build would leave it: a private copy with the generated files updated."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.twin import is_twin, make_twin, recipe_to_build
from feedstock_tools.feedstock.up_to_date import update
from feedstock_tools.files.temporary import temporary_folder

#: What is read or written in the copy as a file of its own; everything else in it is a link to the feedstock.
_COPIED = frozenset({"feedstock.yaml", "conda-forge.yml", "recipe", ".ci_support", ".feedstock-tools"})
#: The only other hidden folder that a build reads; a rerender writes into some of the rest.
_SCRIPTS = ".scripts"


@contextmanager
def updated_copy(feedstock: Feedstock) -> Iterator[tuple[Feedstock, Path]]:
    """A temporary copy of a feedstock after `refresh`, and its recipe to build. The feedstock stays unchanged.

    Errors inside the context name the files of the feedstock, not those of the copy.

    Args:
        feedstock: one with a spec.

    Raises:
        InputError: the spec, the recipe or the variant files are invalid.
        WorkError: the copy cannot be written.
    """
    with temporary_folder() as temporary:
        copy = Feedstock(temporary.resolve() / feedstock.folder.name)
        try:
            _mirror(feedstock.folder, copy.folder)
            yield copy, _updated_recipe(copy)
        except InputError as error:
            raise InputError.of(
                [
                    replace(mistake, path=_original(mistake.path, copy.folder, feedstock.folder))
                    for mistake in error.mistakes
                ]
            ) from error


def _mirror(original: Path, copy: Path) -> None:
    try:
        copy.mkdir()
        for entry in original.iterdir():
            if entry.name in _COPIED:
                own = copy / entry.name
                shutil.copytree(entry, own, symlinks=True) if entry.is_dir() else shutil.copy2(entry, own)
            elif entry.name == _SCRIPTS or not entry.name.startswith("."):
                (copy / entry.name).symlink_to(entry)
    except OSError as error:
        raise WorkError(f"cannot copy the feedstock: {error.strerror or error}", path=copy) from error


def _updated_recipe(copy: Feedstock) -> Path:
    """Update the generated files of the copy; return its recipe to build."""
    from feedstock_tools.generate import read_spec, render

    spec = read_spec(copy.folder)
    update(copy, spec)
    artifacts = Artifacts(copy.artifacts)
    recipe = recipe_to_build(copy, artifacts)
    if is_twin(recipe, artifacts):
        make_twin(copy, artifacts, render(spec, "v1"), inputs="")
    return recipe


def _original(path: Path | None, copy: Path, original: Path) -> Path | None:
    return original / path.relative_to(copy) if path is not None and path.is_relative_to(copy) else path
