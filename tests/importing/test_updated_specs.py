"""`feedstock-tools import --update`: what others change in generated files is taken into the spec."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path
from shutil import rmtree

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


SHARED = """\
__migrator:
  kind: version
  migration_number: 1
libsolve:
  - 5
migrator_ts: 1700000000
"""
OWN = """\
migrator_ts: 1700000001
__migrator:
  use_local: true
  # only here
zlib:  # [linux]
  - 2  # [linux]
"""
SCRIPT = """\
#!/bin/bash
if [[ "${cuda_compiler_version}" != None ]]; then
  export HERMETIC_CUDA_COMPUTE_CAPABILITIES=sm_60,sm_90,compute_90  # ours
fi
"""


def _migrations(feedstock: Path) -> Path:
    folder = feedstock / ".ci_support" / "migrations"
    folder.mkdir(parents=True)
    return folder


def test_migrations_come_with_their_contents_change_and_go(v1: Path) -> None:
    folder, pinning = _migrations(v1), v1.parent / "pinning"
    shared = pinning / "share/conda-forge/migrations/libsolve5.yaml"
    shared.parent.mkdir(parents=True)
    shared.write_text(SHARED)
    (folder / "libsolve5.yaml").write_text(SHARED)
    imported(v1).write()
    assert "\nmigrations: [libsolve5]\n" in (v1 / "feedstock.yaml").read_text()
    generate(v1).apply(force=True)
    assert (folder / "libsolve5.yaml").read_text() == SHARED

    (folder / "zlib2.yaml").write_text(OWN)
    updated = update_spec(v1, pinning=pinning)
    assert (updated.missed, updated.differences) == ((), ())
    added = [line[2:] for line in difference(updated.before, updated.text) if line[0] == "+"]
    assert added == [
        "migrations:",
        "  libsolve5: {}",
        "  zlib2:",
        "    verbatim: |",
        *(f"      {line}" for line in OWN.splitlines()),
    ]

    (v1 / "feedstock.yaml").write_text(updated.text)
    generate(v1).apply(force=True)
    (folder / "zlib2.yaml").write_text(OWN.replace("- 2", "- 3"))
    (folder / "libsolve5.yaml").unlink()
    updated = update_spec(v1, pinning=pinning)
    assert (updated.missed, updated.differences) == ((), ())
    assert difference(updated.before, updated.text) == [
        "-   libsolve5: {}",
        "-         - 2  # [linux]",
        "+         - 3  # [linux]",
    ]

    (v1 / "feedstock.yaml").write_text(updated.text)
    (folder / "libsolve5.yaml").write_text(SHARED)
    updated = update_spec(v1, pinning=pinning)
    assert difference(updated.before, updated.text) == ["+   libsolve5: {}"]


def test_architectures_of_a_script_that_people_wrote_are_a_line_of_the_spec(v0: Path) -> None:
    script = v0 / "recipe" / "common.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    imported(v0).write()
    text = (v0 / "feedstock.yaml").read_text()
    assert "  architectures: [sm_60, sm_90, compute_90]\n" in text
    assert "  script: {edits: common.sh, variable: HERMETIC_CUDA_COMPUTE_CAPABILITIES, style: list}\n" in text
    generate(v0).apply(force=True)
    assert script.read_text() == SCRIPT

    changed(script, ("sm_90,", "sm_90,sm_120,"), ("fi\n", "fi\necho done\n"))
    updated = update_spec(v0, pinning=v0.parent / "pinning")
    assert (updated.missed, updated.differences) == ((), ())
    assert difference(updated.before, updated.text) == [
        "-   architectures: [sm_60, sm_90, compute_90]",
        "+   architectures: [sm_60, sm_90, sm_120, compute_90]",
    ]

    (v0 / "feedstock.yaml").write_text(text.replace("sm_60, ", ""))
    generate(v0).apply()
    assert script.read_text() == SCRIPT.replace("sm_60,", "").replace("fi\n", "fi\necho done\n")
    assert script.stat().st_mode & 0o777 == 0o755


def test_all_patches_of_a_folder_are_one_pattern(v0: Path) -> None:
    meta = v0 / "recipe" / "meta.yaml"
    changed(meta, ("b.patch  # [win]", "b.patch"))
    imported(v0).write()
    spec = v0 / "feedstock.yaml"
    assert '    patches: ["patches/*.patch"]\n' in spec.read_text()
    generate(v0).apply(force=True)
    (v0 / "recipe/patches/c.patch").touch()
    changed(meta, ("      - patches/b.patch\n", "      - patches/b.patch\n      - patches/c.patch\n"))
    updated = update_spec(v0, pinning=v0.parent / "pinning")
    assert (updated.missed, updated.differences, updated.diff()) == ((), (), "")


def test_a_migration_that_is_over_leaves_the_spec(v1: Path) -> None:
    folder, pinning = _migrations(v1), v1.parent / "pinning"
    shared = pinning / "share/conda-forge/migrations/libsolve5.yaml"
    shared.parent.mkdir(parents=True)
    shared.write_text(SHARED)
    (folder / "libsolve5.yaml").write_text(SHARED)
    imported(v1).write()
    generate(v1).apply(force=True)
    shared.unlink()
    assert difference((text := update_spec(v1, pinning=pinning)).before, text.text) == ["- migrations: [libsolve5]"]
    (v1 / "feedstock.yaml").unlink()
    assert "libsolve5" not in imported(v1).text


def test_what_is_skipped_for_a_while_keeps_its_requirements(v0: Path) -> None:
    meta, pinning = v0 / "recipe" / "meta.yaml", v0.parent / "pinning"
    imported(v0).write()
    generate(v0).apply(force=True)
    spec, recipe = (v0 / "feedstock.yaml").read_text(), meta.read_text()
    skips = [line for line in recipe.splitlines() if line.startswith("  skip:")]
    changed(meta, (skips[0], "  skip: true  # [not osx]"), (skips[1], "  # for a while"))
    updated = update_spec(v0, pinning=pinning)
    assert (updated.missed, updated.differences) == ((), ())
    lines = difference(updated.before, updated.text)
    assert [line for line in lines if line[0] == "+"] == ["+   - {when: not osx, why: for a while}"]
    (v0 / "feedstock.yaml").write_text(updated.text)
    generate(v0).apply(force=True)
    meta.write_text(recipe)
    updated = update_spec(v0, pinning=pinning)
    assert (updated.missed, updated.differences) == ((), ())
    assert sorted(updated.text.split()) == sorted(spec.split())


def test_without_the_generated_files_there_is_nothing_to_take_over(spec: Path) -> None:
    feedstock = spec.parent
    rmtree(feedstock / "recipe")
    words = ("import", str(feedstock), "--update", "--pinning", str(feedstock.parent / "pinning"))
    done = command.here(*words, folder=feedstock)
    assert done.returncode == 2
    assert "recipe.yaml: there is no such file\n  `feedstock-tools generate` writes it" in done.stderr
