"""Which word of a command line is the feedstock's folder, and not the name of a configuration."""

from __future__ import annotations

import os
from pathlib import Path

_SPEC_OR_RECIPE = ("feedstock.yaml", "recipe/recipe.yaml", "recipe/meta.yaml")


def is_folder(word: str, *, only_existing: bool, feedstock: Path | None) -> bool:
    """Whether a word is the feedstock's folder and not a name, by the rules in docs/command-line.md.

    Args:
        word: as it was typed.
        only_existing: a word with a slash may also be a package.
        feedstock: the value of `--feedstock`; with it, a word without a slash is a name.
    """
    if word in (".", "..") or any(separator in word for separator in (os.sep, os.altsep) if separator):
        return not only_existing or Path(word).is_dir()
    return feedstock is None and any(Path(word, file).is_file() for file in _SPEC_OR_RECIPE)
