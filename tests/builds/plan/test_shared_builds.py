"""How often the top level of a `meta.yaml` runs in a configuration: as often as conda-build 26.7 runs it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.plan.rendering import PlannedInputs, render_outputs
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow

OUTPUTS = """\
outputs:
  - name: liba
    files:
      - lib
  - name: py-a
    script: install.sh
    requirements:
      host:
        - python
      run:
        - python
        - liba
"""


def _top(more: str = "", name: str = "a-split") -> str:
    return f"package:\n  name: {name}\n  version: 1\n{more}"


#: What a recipe has above its outputs, its build.sh → the number of runs for two Pythons, and for two flavours of each.
TOPS = {
    "no Python": (_top(), "make", 1, 1),
    "Python in host": (_top("requirements:\n  host:\n    - python\n"), "make", 2, 2),
    "Python in build.sh": (_top(), "echo ${python}", 2, 2),
    "the name of an output with Python": (_top(name="py-a"), "make", 2, 2),
    "the name of an output without": (_top(name="liba"), "make", 1, 1),
    "a flavour": (_top("build:\n  string: {{ flavour }}\n"), "make", 1, 2),
    "no script": (_top(), None, 0, 0),
    "build/script": (_top("build:\n  script: make\n"), None, 1, 1),
}


def rows(flavours: tuple[str, ...]) -> tuple[PlannedRow, ...]:
    values = [
        {"python": f"{python}.* *_cpython", "flavour": flavour, "target_platform": "linux-64"}
        for python in ("3.11", "3.12")
        for flavour in flavours
    ]
    return tuple(PlannedRow(f"row {number}", each, None, None) for number, each in enumerate(values))


def planned(folder: Path, top: str, script: str | None, flavours: tuple[str, ...]) -> tuple[PlannedRow, ...]:
    (folder / "meta.yaml").write_text(f"{top}\n{OUTPUTS}")
    (folder / "install.sh").write_text("cp a $PREFIX\n")
    if script is not None:
        (folder / "build.sh").write_text(f"{script}\n")
    configuration = PlannedConfiguration("linux_64_", "linux-64", rows(flavours))
    (complete,), _ = render_outputs([configuration], folder / "recipe.yaml", {"linux-64": "conda-build 1"})
    assert complete.refusal is None
    return complete.rows


@pytest.mark.parametrize("case", TOPS)
def test_a_top_level_is_run_as_often_as_by_conda_build(tmp_path: Path, case: str) -> None:
    top, script, pythons, flavours = TOPS[case]
    for number, chosen in ((pythons, ("x",)), (flavours, ("x", "y"))):
        made = planned(tmp_path, top, script, chosen)
        shared = [{build.identity for build in row.shared} for row in made]
        assert len(set().union(*shared)) == number
        assert all({each.name for each in row.shared} == set(output.staging) for row in made for output in row.outputs)


@pytest.mark.parametrize(("top", "number"), [("", 1), ("requirements:\n  host:\n    - libtorch * cuda*\n", 2)])
def test_a_shared_build_is_that_of_a_machine_without_gpu_unless_it_names_cuda(
    tmp_path: Path, top: str, number: int
) -> None:
    (tmp_path / "meta.yaml").write_text(f"{_top(top)}\n{OUTPUTS}")
    (tmp_path / "build.sh").write_text("make\n")
    of_both = tuple(replace(row, cuda=cuda) for row, cuda in zip(rows(("x",)), (None, "12.9"), strict=True))
    configuration = PlannedConfiguration("linux_64_", "linux-64", of_both)
    (complete,), _ = render_outputs([configuration], tmp_path / "recipe.yaml", {"linux-64": "conda-build 1"})
    shared = {build.identity: build for row in complete.rows for build in row.shared}
    assert len(shared) == number
    assert {build.uses_cuda for build in shared.values()} == {number == 2}


def test_a_stamp_of_files_that_changed_after_planning_began_is_none(tmp_path: Path) -> None:
    began = time.time_ns()
    (tmp_path / "recipe.yaml").write_text("changed meanwhile")
    assert PlannedInputs.of(tmp_path / "recipe.yaml", [], began).stamp == ""
    assert PlannedInputs.of(tmp_path / "recipe.yaml", [], time.time_ns() + 1_000_000_000).stamp


#: A recipe of each format with a shared build and two outputs that inherit from it.
FORMATS = {
    "meta.yaml": f"{_top()}\n{OUTPUTS}",
    "recipe.yaml": """\
recipe: {name: a-split, version: 1}
build: {number: 0}
outputs:
  - staging: {name: made}
    build: {script: make}
  - package: {name: liba}
    inherit: made
    build: {files: [lib/**]}
  - package: {name: py-a}
    inherit: made
    build: {script: cp a $PREFIX}
""",
}


@pytest.mark.parametrize("file", FORMATS)
def test_the_plan_knows_which_packages_must_have_files(tmp_path: Path, file: str) -> None:
    empty = {"meta.yaml": "  - name: all\n", "recipe.yaml": "  - package: {name: all}\n"}[file]
    (tmp_path / file).write_text(FORMATS[file] + empty)
    (tmp_path / "build.sh").write_text("make\n")
    configuration = PlannedConfiguration("linux_64_", "linux-64", rows(("x",)))
    (complete,), _ = render_outputs([configuration], tmp_path / "recipe.yaml", {"linux-64": "conda-build 1"})
    assert {each.name for each in complete.rows[0].outputs if each.has_files} == {"liba", "py-a"}


@pytest.mark.parametrize("file", FORMATS)
@pytest.mark.parametrize(("engine", "number"), [("container 1", 2), ("conda-build 1", 1), ("rattler-build 1", 1)])
def test_an_image_is_part_of_what_a_container_builds(tmp_path: Path, file: str, engine: str, number: int) -> None:
    (tmp_path / file).write_text(FORMATS[file])
    (tmp_path / "build.sh").write_text("make\n")
    (first, *_) = rows(("x",))
    images = tuple(replace(first, values={**first.values, "docker_image": image}) for image in ("alma8", "alma9"))
    configuration = PlannedConfiguration("linux_64_", "linux-64", images)
    (complete,), _ = render_outputs([configuration], tmp_path / "recipe.yaml", {"linux-64": engine})
    assert len({build.identity for row in complete.rows for build in (*row.shared, *row.outputs)}) == 3 * number


def test_an_output_that_rows_make_the_same_has_one_identity(tmp_path: Path) -> None:
    made = planned(tmp_path, *TOPS["no Python"][:2], ("x",))
    identities = [{output.name: output.identity for output in row.outputs} for row in made]
    assert identities[0]["liba"] == identities[1]["liba"]
    assert identities[0]["py-a"] != identities[1]["py-a"]


def test_outputs_with_the_same_requirements_are_two(tmp_path: Path) -> None:
    top = f"{TOPS['no Python'][0]}outputs:\n  - name: liba\n  - name: libb\n"
    (tmp_path / "meta.yaml").write_text(top)
    configuration = PlannedConfiguration("linux_64_", "linux-64", rows(("x",)))
    (complete,), _ = render_outputs([configuration], tmp_path / "recipe.yaml", {"linux-64": "conda-build 1"})
    first, second = complete.rows[0].outputs
    assert first.identity != second.identity
