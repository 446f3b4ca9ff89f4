"""Local sources and the folders that templates build are checked when a recipe is generated; a rerender says whether
the recipe is that of the spec."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.rerender import rerender as command
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.up_to_date import behind_spec, outdated, refresh, updated_copy
from feedstock_tools.generate.generating import generate
from feedstock_tools.generate.spec.reading import read_spec

SPEC = """\
name: demo
version: 1.2.0
pinning: self-contained
platforms: {linux-64: }
sources: [SOURCES]
outputs:
  - name: demo
    kind: library
    script: {template: cmake, folder: FOLDER}
    requirements: {build: [compiler: c, stdlib: c, cmake, ninja]}
about: {homepage: https://example.org/demo, license: MIT, license_file: LICENSE, summary: Counts}
maintainers: [someone]
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """An empty feedstock beside sources with the folders `library` and `tests`, and a link to elsewhere."""
    for name in ("library", "tests"):
        (tmp_path / "src" / name).mkdir(parents=True)
    (tmp_path / "src/library/CMakeLists.txt").touch()
    (tmp_path / "src/LICENSE").touch()
    (tmp_path / "src/elsewhere").symlink_to(tmp_path)
    (tmp_path / "feedstock").mkdir()
    return tmp_path / "feedstock"


def write(feedstock: Path, folder: str, sources: Sequence[str] = ("path: ../../src",)) -> None:
    listed = ", ".join(f"{{{source}}}" for source in sources)
    (feedstock / "feedstock.yaml").write_text(SPEC.replace("SOURCES", listed).replace("FOLDER", folder))


@pytest.mark.parametrize(
    ("folder", "message", "hint"),
    [
        ("libary", "there is no folder 'libary' in {src}", "Did you mean 'library'?"),
        ("nothing", "there is no folder 'nothing' in {src}", "It has elsewhere, library, tests."),
        (
            "library/CMakeLists.txt",
            "'library/CMakeLists.txt' is a file, not a folder of the sources",
            "Name the folder with the project.",
        ),
        ("elsewhere", "'elsewhere' leaves the source ../../src", "{src}/elsewhere is a link to {top}."),
    ],
)
def test_a_folder_that_no_template_can_build_is_a_mistake_with_its_place(
    feedstock: Path, folder: str, message: str, hint: str
) -> None:
    write(feedstock, folder)
    names = {"src": feedstock.parent / "src", "top": feedstock.parent}
    with pytest.raises(InputError) as caught:
        generate(feedstock)
    expected = Mistake(message.format(**names), feedstock / "feedstock.yaml", 9, 39, hint.format(**names))
    assert caught.value.mistakes == (expected,)
    read_spec(feedstock)  # a copy of the feedstock may be without its sources


@pytest.mark.parametrize("folder", ["../src", "/tmp", "library/../../x"])
def test_a_folder_that_leaves_the_sources_is_the_only_mistake(feedstock: Path, folder: str) -> None:
    write(feedstock, folder)
    with pytest.raises(InputError) as caught:
        generate(feedstock)
    assert [each.message for each in caught.value.mistakes] == [
        f"'{folder}' is not the name of a folder below the sources"
    ]


def test_a_missing_folder_of_sources_is_a_mistake_and_an_archive_may_come_later(feedstock: Path) -> None:
    write(feedstock, ".", ["path: ../../scr"])
    with pytest.raises(InputError, match=r"there is no folder ../../scr") as caught:
        generate(feedstock)
    assert (caught.value.mistakes[0].line, caught.value.mistakes[0].column) == (5, 18)
    assert str(feedstock.parent / "scr") in (caught.value.mistakes[0].hint or "")

    write(feedstock, "library", ['path: "../../demo-{version}.tar.gz"'])
    assert generate(feedstock).stale


@pytest.mark.parametrize(
    ("sources", "folder", "is_found"),
    [
        (["path: ../../src, folder: code"], "code/library", True),
        (["path: ../../src, folder: code"], "code", True),
        (["path: ../../src, folder: deep/code"], "deep", True),
        (["path: ../../src, folder: code"], "library", False),
        (["path: ../../src/tests, folder: t", "path: ../../src"], "library", True),
        (["path: ../../src", "git: https://example.org/x.git, rev: v1"], "nothing", True),
    ],
)
def test_folders_are_those_of_the_work_folder(feedstock: Path, sources: list[str], folder: str, is_found: bool) -> None:
    write(feedstock, folder, sources)
    if is_found:
        assert generate(feedstock).stale
    else:
        with pytest.raises(InputError, match="no source has a folder 'library'"):
            generate(feedstock)


def test_a_rerender_says_that_the_recipe_is_not_that_of_the_spec(
    feedstock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(feedstock, "library")
    generate(feedstock).apply()
    spec = feedstock / "feedstock.yaml"
    assert behind_spec(feedstock) is None

    later = spec.stat().st_mtime_ns + 10**9
    os.utime(spec, ns=(later, later))
    assert behind_spec(feedstock) is None, "a spec that says the same was only touched"

    spec.write_text(spec.read_text().replace("Counts", "Counts more"))
    os.utime(spec, ns=(later, later))
    monkeypatch.chdir(feedstock)
    ran = CliRunner().invoke(command, [])
    assert ran.exit_code == 0
    assert (
        "note: recipe/recipe.yaml is not what feedstock.yaml says now; run: feedstock-tools generate .\n" in ran.stderr
    )

    write(feedstock, "../library")
    os.utime(spec, ns=(later, later))
    behind = behind_spec(feedstock)
    assert behind is not None
    assert behind.startswith("the recipe was generated from an earlier feedstock.yaml, and today's has mistakes (")
    assert f"{spec}:9:39: '../library' is not the name of a folder below the sources)" in behind


def test_a_recipe_that_a_person_has_edited_is_not_compared(feedstock: Path) -> None:
    write(feedstock, "library")
    generate(feedstock).apply()
    recipe = feedstock / "recipe/recipe.yaml"
    recipe.write_text(recipe.read_text().replace("Counts", "Counts by hand"))
    spec = feedstock / "feedstock.yaml"
    spec.write_text(spec.read_text().replace("Counts", "Counts more"))
    os.utime(spec, ns=(spec.stat().st_mtime_ns + 10**9,) * 2)
    assert behind_spec(feedstock) is None


def test_a_license_file_is_looked_for_in_local_sources(feedstock: Path) -> None:
    write(feedstock, "library")
    generate(feedstock)
    path = feedstock / "feedstock.yaml"
    path.write_text(path.read_text().replace("license_file: LICENSE", "license_file: LICENCE"))

    with pytest.raises(InputError) as refused:
        generate(feedstock)

    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.line) == (path, 11)
    assert mistake.message == "the sources have no file LICENCE"
    assert mistake.hint == "Did you mean 'LICENSE'?"


def test_builds_are_refused_without_a_license_file_that_a_spec_names(feedstock: Path) -> None:
    write(feedstock, "library")
    path = feedstock / "feedstock.yaml"
    path.write_text(path.read_text().replace("license_file: LICENSE", "license_file: THIRDPARTY.yml"))
    generate(feedstock).apply()
    for look in (outdated, refresh):
        with pytest.raises(InputError, match=r"(?s):11:\d+: the sources have no file THIRDPARTY.yml.*recipe\.$"):
            look(Feedstock(feedstock), Artifacts(feedstock / "artifacts"), {"HOME": str(feedstock)})
    (feedstock / "recipe/bundle.sh").write_text("cargo-bundle-licenses --output THIRDPARTY.yml\n")
    refresh(Feedstock(feedstock), Artifacts(feedstock / "artifacts"), {"HOME": str(feedstock)})


def test_builds_are_refused_once_a_license_file_that_was_there_is_gone(feedstock: Path) -> None:
    write(feedstock, "library")
    generate(feedstock).apply()
    found = Feedstock(feedstock), Artifacts(feedstock / "artifacts"), {"HOME": str(feedstock)}
    for look in (refresh, outdated):
        look(*found)
    (license_file,) = feedstock.parent.rglob("LICENSE")
    license_file.rename(license_file.with_name("OTHER"))
    for look in (refresh, outdated):
        with pytest.raises(InputError, match="the sources have no file LICENSE"):
            look(*found)


def test_the_copy_in_which_plan_looks_ahead_has_sources_that_lie_beside_the_feedstock(feedstock: Path) -> None:
    sources = ("path: ../../src", "path: '../../src/elsewhere/new/demo-{version}.zip'", "path: ../../../../../../../x")
    write(feedstock, "library", sources)
    with updated_copy(Feedstock(feedstock)) as (copy, recipe):
        assert (recipe.parent / "../../src").resolve() == feedstock.parent / "src"
        assert copy.folder != feedstock
    assert not (feedstock.parent / "new").exists()
