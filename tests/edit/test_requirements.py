"""Requirements that go: neighbours in brackets, and branches that would be left empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.edit.requirements import (
    Where,
    add_requirement,
    drop_requirement,
    limit_requirement,
    pin_requirement,
)
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document

BRANCH = """\
requirements:
  run:
    - python
    - if: linux
      then:
        - numpy
        - numpy >=2
    - if: win
      then: scipy
      else:
        - numpy
        - pip
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[numpy, numpy >=2, pip]", "[pip]"),
        ("[pip, numpy, numpy >=2]", "[pip]"),
        ("[numpy, pip, numpy >=2, scipy, numpy <3]", "[pip, scipy]"),
    ],
)
def test_several_items_in_brackets_go_with_their_commas(before: str, after: str) -> None:
    recipe = Document(Path("meta.yaml"), f"requirements: {{run: {before}}}")
    assert drop_requirement(recipe, "numpy", Where()).text == f"requirements: {{run: {after}}}"


def test_a_branch_that_holds_nothing_else_goes_whole() -> None:
    recipe = Document(Path("recipe.yaml"), BRANCH)
    gone = "    - if: linux\n      then:\n        - numpy\n        - numpy >=2\n"
    assert drop_requirement(recipe, "numpy", Where()).text == BRANCH.replace(gone, "").replace("        - numpy\n", "")


def test_a_pin_reaches_into_branches() -> None:
    recipe = Document(Path("recipe.yaml"), BRANCH)
    pinned = pin_requirement(recipe, "numpy >=3", Where()).text
    assert pinned == BRANCH.replace("- numpy >=2\n", "- numpy\n").replace("- numpy\n", "- numpy >=3\n")


def test_the_same_requirement_may_be_added_under_another_selector() -> None:
    text = "requirements:\n  host:\n    - libomp >=4  # [osx]\n"
    recipe = Document(Path("meta.yaml"), text)
    assert add_requirement(recipe, "libomp >=4", Where("host", condition="linux")).text == (
        f"{text}    - libomp >=4  # [linux]\n"
    )
    for condition in ("osx", None):
        with pytest.raises(InputError, match="host has 'libomp >=4' already"):
            add_requirement(recipe, "libomp >=4", Where("host", condition=condition))


def test_an_output_is_named_as_the_recipe_renders_it_and_goes_before_the_recipe_of_its_name() -> None:
    text = """\
{% set name = "demo" %}
package:
  name: {{ name }}
outputs:
  - name: {{ name }}
    requirements:
      run:
        - python
  - name: lib{{ name }}
    requirements:
      run:
        - zlib
"""
    recipe = Document(Path("meta.yaml"), text)
    added = add_requirement(recipe, "numpy", Where("run", "demo")).text
    assert added == text.replace("- python\n", "- python\n        - numpy\n")
    added = add_requirement(recipe, "bzip2", Where("run", "libdemo")).text
    assert added == text.replace("- zlib\n", "- zlib\n        - bzip2\n")


def test_a_recipe_without_a_place_for_requirements_is_an_error() -> None:
    with pytest.raises(InputError, match=r"meta\.yaml:1:1: nothing here has a place for requirements"):
        add_requirement(Document(Path("meta.yaml"), "about: {}\n"), "numpy", Where("run"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- numba  # [linux]", "- numba  # [linux and py<39]"),
        ("- numba", "- numba  # [py<39]"),
        ("- numba  # why", "- numba  # [py<39] why"),
        ("- numba  # [osx or win]", "- numba  # [(osx or win) and py<39]"),
    ],
)
def test_a_limit_comes_besides_selectors_and_comments(before: str, after: str) -> None:
    text = "requirements:\n  run:\n    {}\n    - scipy\n"
    recipe = Document(Path("meta.yaml"), text.format(before))
    assert limit_requirement(recipe, "numba", Where(condition="py<39")).text == text.format(after)


def test_a_limit_reaches_into_branches() -> None:
    recipe = Document(Path("recipe.yaml"), BRANCH + "    - if: osx\n      then: [lapack]\n      else: numpy\n")
    limited = limit_requirement(recipe, "numpy", Where(condition="cuda")).text
    assert "    - if: linux and cuda\n      then:\n        - numpy\n        - numpy >=2\n" in limited
    assert "      else:\n        - if: cuda\n          then: numpy\n        - pip\n" in limited
    assert limited.endswith("      else:\n        - if: cuda\n          then: numpy\n")


@pytest.mark.parametrize(
    ("text", "condition", "message"),
    [
        ("requirements: {run: [numba]}", "linux", "a list in brackets"),
        ("requirements: {run: [numba]}", None, "limited to a condition"),
        ("requirements: {run: [scipy]}", "linux", "names 'numba'"),
    ],
)
def test_a_limit_that_has_no_place_is_an_error(text: str, condition: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        limit_requirement(Document(Path("meta.yaml"), text), "numba", Where(condition=condition))
