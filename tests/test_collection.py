"""Every test runs: all files of tests are collected, and none is in a folder that test runners silently skip."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from fnmatch import fnmatch

import pytest

from tests.__main__ import MORE_THAN_CORES, NOT_FOR_TESTS, ONCE_MORE, arguments, clear_environment, in_parallel
from tests.support import command
from tests.support.paths import ROOT
from tests.support.tracked import tracked_files

#: The default of pytest's `norecursedirs`, without folders with a leading dot. Other tools skip these names too.
PASSED_OVER = ("*.egg", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")


def pytest_of(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Let pytest collect without plugins, which take a second to import."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *arguments]
    return command.run(words, ROOT, command.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))


@functools.cache
def collected_from(folder: str, *options: str) -> set[str]:
    """The files below a folder that pytest collects tests from."""
    run = pytest_of(*options, folder)
    assert run.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED), run.stdout + run.stderr
    return {line.rpartition(": ")[0] for line in run.stdout.splitlines()}


def files_of_tests() -> set[str]:
    return {path.as_posix() for path in tracked_files("tests") if fnmatch(path.name, "test_*.py")}


def test_every_file_of_tests_is_collected(request: pytest.FixtureRequest) -> None:
    config = request.config
    left_out = config.option.ignore or config.option.fast
    whole = [str(ROOT / each) for each in config.args] == [str(ROOT / "tests")] and not left_out
    here = {item.path.relative_to(ROOT).as_posix() for item in request.session.items} if whole else set()
    assert files_of_tests() - (here or collected_from("tests")) == set()


@pytest.mark.parametrize("option", ["--ignore=tests/report/test_pin_show.py", "--override-ini=norecursedirs=.* report"])
def test_files_that_are_not_collected_are_noticed(option: str) -> None:
    few = "--override-ini=python_files=test_pin_*.py"
    assert "tests/report/test_pin_show.py" in files_of_tests() - collected_from("tests", few, option)
    assert "tests/report/test_pin_show.py" in collected_from("tests/report", few)


def test_no_folder_has_a_name_that_test_runners_skip() -> None:
    folders = {part for path in tracked_files() for part in path.parts[:-1]}
    assert {"tests", "builds"} <= folders
    assert [name for name in folders if any(fnmatch(name, pattern) for pattern in PASSED_OVER)] == []
    hidden = [path for path in tracked_files("tests") if path.name.startswith("test_") and "/." in f"/{path}"]
    assert hidden == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], [*in_parallel(), *ONCE_MORE]),
        (["--fast", "tests/pins"], [*in_parallel(), *ONCE_MORE, "--fast", "tests/pins"]),
        (["-n", "0"], [*in_parallel(), *ONCE_MORE, "-n", "0"]),
        (["-p", "no:xdist"], [*ONCE_MORE, "-p", "no:xdist"]),
    ],
)
def test_tests_run_on_all_cores_unless_told_otherwise(given: list[str], expected: list[str]) -> None:
    assert arguments(given) == expected


def test_there_are_more_workers_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    assert in_parallel()[:2] == ["-n", str(2 + MORE_THAN_CORES)]


def test_variables_that_change_what_tests_cost_or_see_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NOT_FOR_TESTS:
        monkeypatch.setenv(name, "1")
    clear_environment()
    assert not set(NOT_FOR_TESTS) & os.environ.keys()


def test_one_option_leaves_out_what_is_slow() -> None:
    file = "tests/test_bounded_commands.py"
    assert pytest_of(file).returncode == 0
    assert pytest_of("--fast", file).returncode == pytest.ExitCode.NO_TESTS_COLLECTED
