"""The list counts the builds that a short name means, and commands report the name of several."""

import json
import re
from pathlib import Path

import pytest

from feedstock_tools.check.rehearsal import Environment, Rehearsal
from feedstock_tools.feedstock.configurations import in_short
from feedstock_tools.feedstock.planned import (
    PlannedConfiguration,
    PlannedRow,
    ShortName,
    rows_by_short_name,
    select,
    with_filter,
    with_short_names,
)
from feedstock_tools.files import locks
from tests.support import command
from tests.support.feedstocks import GPU, HERE, TinyFeedstock, copy_of_example


def configuration(name: str, platform: str, *rows: tuple[str | None, str | None]) -> PlannedConfiguration:
    return PlannedConfiguration(
        name, platform, tuple(PlannedRow(f"{name}{at}", {}, python, cuda) for at, (cuda, python) in enumerate(rows))
    )


MANY = (
    configuration("a", "linux-64", ("11.2", "3.11"), ("11.2", "3.12")),
    configuration("b", "linux-64", ("12.0", "3.11")),
    configuration("c", "linux-64", ("12.9", "3.11"), ("12.9", "3.1")),
    configuration("d", "linux-64", (None, "3.11")),
    configuration("e", "linux-64", (None, None)),
    configuration("f", "linux-aarch64", ("12.9", "3.11")),
)


def test_the_count_of_a_short_name_is_what_it_selects() -> None:
    counts = rows_by_short_name(MANY)
    assert counts["linux_64_cuda11.2"] == 2
    assert counts["linux_64_cuda12"] == 3
    assert counts["linux_64_py3.1"] == 1
    for name, count in counts.items():
        assert ShortName.parse(name) is not None, name
        assert sum(len(each.rows) for each in select([name], MANY)) == count, name


def test_the_list_says_how_many_builds_a_short_name_means(feedstock: TinyFeedstock) -> None:
    head, _, *lines = feedstock.build("--list").stdout.splitlines()
    assert head.split()[:2] == ["name", "builds"]
    assert [line.split()[:2] for line in lines if line.startswith(GPU)] == [[GPU, "2"]]
    entries = json.loads(feedstock.build("--list", "--json", f"{GPU}_py3.11").stdout)
    assert [entry["builds"] for entry in entries] == [1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (GPU, f"{GPU} means 2 builds: {GPU}_py3.11, {GPU}_py3.12"),
        (f"{GPU}_py3.11", None),
    ],
)
def test_a_build_reports_it_before_it_starts(name: str, said: str | None, gpu_feedstock: TinyFeedstock) -> None:
    run = gpu_feedstock.build(name)
    assert run.returncode == 0, run.stdout + run.stderr
    assert [line for line in run.stderr.splitlines() if " means " in line] == ([f"-- {said}"] if said else [])


@pytest.mark.parametrize("words", [("status",), ("ci", "--matrix=github")])
def test_other_commands_report_it_too(words: tuple[str, ...], feedstock: TinyFeedstock) -> None:
    run = feedstock.run(*words, GPU)
    assert run.returncode == 0, run.stderr
    assert f"-- {GPU} means 2 builds: {GPU}_py3.11, {GPU}_py3.12" in run.stderr


def test_the_name_of_a_configuration_needs_no_report(whole_feedstock: TinyFeedstock) -> None:
    run = whole_feedstock.build(f"{HERE.name}_cuda_compiler_version11.2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert " means " not in run.stderr
    run = whole_feedstock.build(GPU)
    assert " means 2 builds" in run.stderr


def test_a_name_that_selected_one_row_and_now_selects_several_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def torch(*kinds: str) -> tuple[PlannedConfiguration, ...]:
        rows = [PlannedRow(kind, {"blas_impl": kind}, None, "12.9") for kind in kinds]
        return with_short_names([PlannedConfiguration(row.name, "linux-64", (row,)) for row in rows])

    said: list[str] = []
    monkeypatch.setattr(locks, "_tell", said.append)
    select(["linux_64_cuda12.9"], torch("mkl"))
    assert said == []
    select(["linux_64_cuda12.9"], torch("mkl", "generic"))
    assert said == ["linux_64_cuda12.9 means 2 builds: linux_64_cuda12.9_mkl, linux_64_cuda12.9_generic"]


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_short_name_with_a_python_selects_its_packages_in_outputs_too(recipe_format: str, tmp_path: Path) -> None:
    folder = copy_of_example("gpuprobe", tmp_path)
    if recipe_format == "v0":
        spec = folder / "feedstock.yaml"
        text = spec.read_text(encoding="utf-8").replace("format: v1", "format: v0")
        text = text.replace("versions: all", "versions: [11.2, 12.9]")
        spec.write_text(
            re.sub(r"^  (linux-aarch64|osx-64|osx-arm64|win-64):\n", "", text, flags=re.M), encoding="utf-8"
        )
        assert command.here("generate", str(folder)).returncode == 0
        assert command.here("rerender", str(folder)).returncode == 0

    def files(name: str) -> set[str]:
        run = command.here("outputs", str(folder), name, "--json")
        assert run.returncode == 0, run.stderr
        return {entry["file"] for entry in json.loads(run.stdout)}

    by_python = {version: files(f"linux_64_cuda11.2_py{version}") for version in ("3.11", "3.12", "3.13", "3.14")}
    assert [len(found) for found in by_python.values()] == [4, 4, 4, 4]
    assert set().union(*by_python.values()) == files("linux_64_cuda11.2")


def test_a_filter_takes_globs_over_short_names_as_names_do() -> None:
    first = configuration("linux_64_cuda_compiler_version11.2", "linux-64", ("11.2", "3.11"))
    given = with_short_names([first, *MANY[3:]])
    for glob in ("linux_64_cuda11*", "*version11*"):
        assert with_filter(glob, given) == given[:1] == select([glob], given)


def test_what_is_found_calls_a_configuration_by_its_short_name(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text("package:\n  name: a\n  version: 1\n")
    (tmp_path / ".ci_support").mkdir()
    name = "linux_64_blas_implmkl"
    (tmp_path / f".ci_support/{name}.yaml").write_text("blas_impl:\n- mkl\n")
    assert command.here("outputs", folder=tmp_path).stdout.startswith("linux_64_cpu\n  linux-64/a-1-")
    found = Rehearsal((Environment(name, f"{name}_py3.12", "a", "run", "linux-64", "solved"),), (), (), 1)
    (environment,) = in_short(found, tmp_path).environments
    assert (environment.configuration, environment.row) == ("linux_64_cpu", f"{name}_py3.12")
