"""The daily use: one change in the spec changes few generated lines."""

from __future__ import annotations

from collections import Counter
from difflib import unified_diff

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render

TENSORFLOW = (data_folder("examples") / "tensorflow" / "feedstock.yaml").read_text()
GPUPROBE = (data_folder("examples") / "gpuprobe" / "feedstock.yaml").read_text()


def _changed_lines(text: str, old: str, new: str, recipe_format: str) -> list[str]:
    assert text.count(old) == 1
    before = render(spec_from_text(text), recipe_format)
    after = render(spec_from_text(text.replace(old, new)), recipe_format)
    changed: list[str] = []
    for path in before.keys() | after.keys():
        lines = unified_diff(before.get(path, "").splitlines(), after.get(path, "").splitlines(), lineterm="", n=0)
        changed += [line for line in list(lines)[2:] if line[0] in "+-"]
    return changed


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_new_version_changes_one_line(recipe_format: str) -> None:
    changed = _changed_lines(TENSORFLOW, "version: 2.6.0", "version: 2.6.2", recipe_format)

    assert len(changed) == 2
    assert all("version" in line for line in changed)


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_new_build_number_changes_one_line(recipe_format: str) -> None:
    assert len(_changed_lines(TENSORFLOW, "number: 2\n", "number: 3\n", recipe_format)) == 2


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_another_python_changes_one_line(recipe_format: str) -> None:
    changed = _changed_lines(GPUPROBE, "3.13, 3.14]", "3.13]", recipe_format)

    assert changed == ["-  - 3.14.* *_cp314"]


def test_another_cuda_version_takes_its_own_lines_along() -> None:
    spec = GPUPROBE.replace("versions: all", "versions: [11.2, 11.8, 12.9]")

    changed = _changed_lines(spec, "11.2, 11.8, 12.9", "11.2, 12.9", "v1")

    removed = Counter(" ".join(line[1:].split()) for line in changed if line.startswith("-"))
    added = Counter(" ".join(line[1:].split()) for line in changed if line.startswith("+"))
    assert not added - removed, "no line is new: selectors may move into another column, and that is all"
    assert (removed - added).total() == 8
    assert sum("11.8" in line for line in removed - added) == 5


def test_a_condition_added_to_a_requirement_moves_no_other_line() -> None:
    changed = _changed_lines(TENSORFLOW, "      - nsync\n", "      - {package: nsync, when: linux}\n", "v0")

    assert changed == ["-    - nsync", "+    - nsync  # [linux]"]
