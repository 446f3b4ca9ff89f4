"""Patches that a spec names by a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.generating import generate

SPEC = """\
name: demo
version: 1.0
platforms: {linux-64: }
sources:
  - url: https://example.org/demo.tar.gz
    sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    patches: [first.patch, {file: "PATTERN", when: linux}]
outputs:
  - name: demo
    kind: library
    script: {commands: ["true"]}
    test: {commands: ["true"]}
about: {license: MIT, license_file: LICENSE, homepage: https://example.org/, summary: For tests.}
maintainers: [someone]
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    patches = tmp_path / "recipe" / "patches"
    patches.mkdir(parents=True)
    (tmp_path / "recipe" / "first.patch").touch()
    for name in ("0010-last.patch", "0002-one.patch", "notes.md"):
        (patches / name).touch()
    return tmp_path


def _recipe(feedstock: Path, pattern: str) -> str:
    (feedstock / "feedstock.yaml").write_text(SPEC.replace("PATTERN", pattern))
    return next(change.new or "" for change in generate(feedstock).changes if change.path.name == "recipe.yaml")


def test_a_pattern_is_its_files_by_name_under_its_condition(feedstock: Path) -> None:
    recipe = _recipe(feedstock, "patches/*.patch")

    patches = recipe[recipe.index("patches:") : recipe.index("build:")].split()
    assert patches[1:6] == ["-", "first.patch", "-", "if:", "linux"]
    assert patches[6:] == ["then:", "-", "patches/0002-one.patch", "-", "patches/0010-last.patch"]


@pytest.mark.parametrize("pattern", ["patches/*.diff", "../*", "/etc/*", "**/../../*"])
def test_a_pattern_without_files_of_the_recipe_is_a_mistake(pattern: str, feedstock: Path) -> None:
    with pytest.raises(InputError, match=r"feedstock\.yaml:7"):
        _recipe(feedstock, pattern)
