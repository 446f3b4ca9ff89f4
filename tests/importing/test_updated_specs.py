"""`feedstock-tools import --update`: what others change in generated files is taken into the spec."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path

import pytest

from feedstock_tools.generate.generating import generate
from feedstock_tools.importing import update_spec
from tests.support import command
from tests.support.importing import imported

NOTE = "# Kept by hand: three lines\n# that no recipe has,\n"


@pytest.fixture
def spec(v1: Path) -> Path:
    """The spec of a feedstock, with a comment and a reason that only it has; its files are generated."""
    imported(v1).write()
    path = v1 / "feedstock.yaml"
    text = path.read_text()
    text = text.replace("  - win\n", "  - {when: win, why: Nobody keeps it.}\n", 1)
    path.write_text(NOTE + text)
    generate(v1).apply(force=True)
    return path


def changed(recipe: Path, *pairs: tuple[str, str]) -> None:
    text = recipe.read_text()
    for old, new in pairs:
        assert old in text, (old, text)
        text = text.replace(old, new)
    recipe.write_text(text)


def difference(before: str, after: str) -> list[str]:
    lines = ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_a_new_version_changes_its_lines_only(spec: Path) -> None:
    before, feedstock = spec.read_text(), spec.parent
    changed(feedstock / "recipe/recipe.yaml", ("2.4.1", "2.5.0"), ("a" * 64, "c" * 64), ("{{ 3 +", "{{ 0 +"))
    words = ("import", str(feedstock), "--update", "--pinning", str(feedstock.parent / "pinning"))
    done = command.here(*words, folder=feedstock)
    assert done.returncode == 0, done.stderr
    assert "changed feedstock.yaml" in done.stderr
    assert difference(before, spec.read_text()) == [
        "- version: 2.4.1",
        "+ version: 2.5.0",
        f"-     sha256: {'a' * 64}",
        f"+     sha256: {'c' * 64}",
        "-   number: 3",
        "+   number: 0",
    ]
    assert [change.path.name for change in generate(feedstock).stale] == []


def test_requirements_come_and_go_at_their_places(spec: Path) -> None:
    feedstock = spec.parent
    changed(
        feedstock / "recipe/recipe.yaml",
        ("    - zlib\n", "    - zlib\n    - if: linux\n      then: libaec\n"),
        ("    - ${{ compiler('cxx') }}\n", "    - ${{ compiler('cxx') }}\n    - ninja >=1.11\n"),
    )
    updated = update_spec(feedstock, pinning=feedstock.parent / "pinning")
    assert (updated.missed, updated.differences) == ((), ())
    assert [line.strip("+- ") for line in difference(updated.before, updated.text)] == [
        "ninja >=1.11",
        "{package: libaec, when: linux}",
    ]
    assert updated.text.startswith(NOTE)
    assert "{when: win, why: Nobody keeps it.}" in updated.text


def test_lines_that_are_written_in_an_unusual_way_stay(spec: Path) -> None:
    feedstock, text = spec.parent, spec.read_text()
    text = text.replace("format: v1\n", "format:   v1\n")
    spec.write_text(text)
    generate(feedstock).apply(force=True)
    changed(feedstock / "recipe/recipe.yaml", ("    - zlib\n", "    - zlib >=1.3\n"))
    updated = update_spec(feedstock, pinning=feedstock.parent / "pinning")
    assert difference(text, updated.text) == ["-         - zlib", "+         - zlib >=1.3"]


def test_an_entry_of_a_group_changes_in_the_group(spec: Path) -> None:
    feedstock, text = spec.parent, spec.read_text()
    text = text.replace("        - zlib\n", "        - use: linked\n").replace(
        "outputs:\n", "groups:\n  linked: [zlib]\n\noutputs:\n"
    )
    spec.write_text(text)
    generate(feedstock).apply(force=True)
    changed(feedstock / "recipe/recipe.yaml", ("    - zlib\n", "    - zlib >=1.3\n"))
    updated = update_spec(feedstock, pinning=feedstock.parent / "pinning")
    assert (updated.missed, updated.differences) == ((), ())
    assert difference(updated.before, updated.text) == ["-   linked: [zlib]", "+   linked: [zlib >=1.3]"]


def test_what_the_spec_says_in_another_way_is_named_and_nothing_is_written(spec: Path) -> None:
    feedstock = spec.parent
    text = spec.read_text().replace("        - zlib\n", "        - {use: linked, when: linux}\n")
    spec.write_text(text.replace("outputs:\n", "groups:\n  linked: [zlib]\n\noutputs:\n"))
    generate(feedstock).apply(force=True)
    before = spec.read_text()
    changed(feedstock / "recipe/recipe.yaml", ("then: zlib", "then: libzlib"))
    words = ("import", str(feedstock), "--update", "--pinning", str(feedstock.parent / "pinning"))
    done = command.here(*words, folder=feedstock)
    assert done.returncode == 1, done.stderr
    assert (
        'not in the spec: outputs.solver.requirements.host: {"package": "zlib", "when": "linux"} became' in done.stderr
    )
    assert spec.read_text() == before
