"""Patches that lie beside a recipe and are named for a version: listed when the version is added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.choices import CUDA, Choice
from feedstock_tools.edit.writing import added_entry, added_item, quoted_like
from feedstock_tools.recipe.written.document import Document, Part

_PATCHES = ("*.patch", "*.diff", "*/*.patch", "*/*.diff")


def with_patches(draft: Draft, choice: Choice, version: str) -> Draft:
    """List the patches in the recipe's folder that are named for a version and that the recipe does not mention yet.

    `patches/0006-add-python-3.14.patch`, `py314.diff` and `cuda130.patch` are named so. Each goes to the end of the
    list that has patches of its folder, else of the first list; a remark names it.

    Args:
        choice: `CUDA` or `PYTHON`.
    """
    for patch in _patches_for(draft.recipe_path.parent, choice, version):
        recipe = draft.recipe
        if PurePosixPath(patch).name not in recipe.text:
            listed = _listing(recipe, patch)
            outcome = "no source of the recipe lists it" if listed is None else "now it is among the recipe's patches"
            remark = f"{patch} is named for {choice.title} {version}: {outcome}"
            draft = draft.with_document(listed or recipe).remarked(remark)
    return draft


def _patches_for(folder: Path, choice: Choice, version: str) -> list[str]:
    """The paths of the patches below the folder of a recipe that are named for a version."""
    word = "cuda" if choice is CUDA else "(?:py(?:thon)?|cp)"
    digits = version.replace(".", "")
    pattern = re.compile(
        rf"(?<![a-z0-9]){word}[-_]?{digits}(?![0-9a-z])|{word}.*(?<![\d.]){re.escape(version)}(?![.]?\d|[a-z])",
        re.IGNORECASE,
    )
    paths = {path for glob in _PATCHES for path in folder.glob(glob) if pattern.search(path.name)}
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _listing(recipe: Document, patch: str) -> Document | None:
    """The recipe with one more patch; None if it has no source outside of `{% if %}` that could have one."""
    lists = [entry.value for source in _sources(recipe) for entry in source.entries if entry.key == "patches"]
    lists = [list_ for list_ in lists if list_.items and not recipe.is_in_block(list_.items[-1].start)]
    folder = PurePosixPath(patch).parent
    beside = [list_ for list_ in lists if any(PurePosixPath(item.text).parent == folder for item in list_.items)]
    for list_ in (beside or lists)[:1]:
        return recipe.changed(added_item(recipe, list_, quoted_like(list_.items[-1], patch), sort=False))
    for source in _sources(recipe):
        if not (source.is_flow or recipe.is_in_block(source.start) or "patches" in source.members):
            return recipe.changed(added_entry(recipe, source, "patches", [f"  - {quoted_like(None, patch)}"]))
    return None


def _sources(recipe: Document) -> Iterator[Part]:
    """The sources of the recipe, each a mapping with an address or a path."""
    for entry in recipe.entries("source"):
        yield from (part for part in (entry.value, *entry.value.items) if part.entries and "if" not in part.members)
