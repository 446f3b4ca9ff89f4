"""Patches that are named for a version of CUDA or Python, and lie beside the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.variants.lists import CUDA, PYTHON, VersionKey
from feedstock_tools.edit.variants.versions import add_version, with_patches

SOURCE = """\
package:
  name: demo
  version: 1
source:
  url: https://example.org/demo-1.tar.gz
{patches}build:
  number: 0
"""


def laid_out(folder: Path, recipe: str, *patches: str) -> Draft:
    """A feedstock of a recipe and empty files beside it."""
    (folder / "recipe/fixes").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(recipe)
    for patch in patches:
        (folder / "recipe" / patch).touch()
    return open_draft(folder)


@pytest.mark.parametrize(
    ("patches", "listed"),
    [
        ("", "  patches:\n    - fixes/py314.patch\n"),
        ("  patches:\n    - other.patch\n", "  patches:\n    - other.patch\n    - fixes/py314.patch\n"),
        ("  patches:\n    - fixes/py314.patch  # [linux]\n", "  patches:\n    - fixes/py314.patch  # [linux]\n"),
    ],
)
def test_a_patch_that_is_named_for_the_version_is_listed(tmp_path: Path, patches: str, listed: str) -> None:
    recipe = SOURCE.format(patches=patches) + "  skip: true  # [py == 314]\n"
    names = ("fixes/py314.patch", "py3.patch", "python313.patch", "other.patch", "cuda314.patch", "py314.txt")
    added = add_version(laid_out(tmp_path / "f", recipe, *names), PYTHON, "3.14", None)
    assert added.recipe.text == SOURCE.format(patches=listed)
    assert ("fixes/py314.patch is named for Python 3.14" in " ".join(added.remarks)) == (patches != listed)


@pytest.mark.parametrize(
    ("choice", "version", "name", "is_named"),
    [
        (PYTHON, "3.10", "0005-lower-python-requires-to-3.10", True),
        (PYTHON, "3.1", "python-3.10", False),
        (PYTHON, "3.14", "0001-add-cp314-wheels", True),
        (PYTHON, "3.14", "happy314", False),
        (CUDA, "13.0", "cuda13.0-headers", True),
        (CUDA, "13.0", "cuda_130", True),
        (CUDA, "13.0", "python-13.0", False),
    ],
)
def test_names_of_patches(tmp_path: Path, choice: VersionKey, version: str, name: str, is_named: bool) -> None:
    draft = laid_out(tmp_path / "f", SOURCE.format(patches=""), f"{name}.diff")
    assert (with_patches(draft, choice, version).recipe != draft.recipe) == is_named


def test_a_patch_that_no_source_can_list_is_named(tmp_path: Path) -> None:
    draft = laid_out(tmp_path / "f", "package:\n  name: demo\n  version: 1\n", "py314.patch")
    after = with_patches(draft, PYTHON, "3.14")
    assert after.recipe == draft.recipe
    assert after.remarks == ("py314.patch is named for Python 3.14: no source of the recipe lists it",)
