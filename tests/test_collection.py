"""Every test runs: all files of tests are collected, and none lies where test runners pass over without a word."""

from __future__ import annotations

import sys
from fnmatch import fnmatch

import pytest

from tests.__main__ import arguments
from tests.support import command
from tests.support.paths import ROOT
from tests.support.tracked import tracked_files

#: The default of pytest's `norecursedirs`, folders with a leading dot aside. Other tools pass over them, too.
PASSED_OVER = ("*.egg", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")


def not_collected(folder: str, *options: str) -> set[str]:
    """The files of tests below a folder that pytest collects nothing of."""
    words = ["-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist", *options, folder]
    run = command.run([sys.executable, *words], ROOT)
    assert run.returncode in (0, 5), run.stdout + run.stderr  # 5: nothing was collected
    collected = {line.rpartition(": ")[0] for line in run.stdout.splitlines()}
    return {str(path) for path in tracked_files(folder) if fnmatch(path.name, "test_*.py")} - collected


def test_every_file_of_tests_is_collected() -> None:
    assert not_collected("tests") == set()


@pytest.mark.parametrize("option", ["--ignore=tests/report/test_pin_show.py", "--override-ini=norecursedirs=.* report"])
def test_what_is_not_collected_is_noticed(option: str) -> None:
    few = "--override-ini=python_files=test_pin_show.py"
    assert "tests/report/test_pin_show.py" in not_collected("tests", few, option)


def test_no_folder_bears_a_name_that_test_runners_pass_over() -> None:
    folders = {part for path in tracked_files() for part in path.parts[:-1]}
    assert {"tests", "builds"} <= folders
    assert [name for name in folders if any(fnmatch(name, pattern) for pattern in PASSED_OVER)] == []
    hidden = [path for path in tracked_files("tests") if path.name.startswith("test_") and "/." in f"/{path}"]
    assert hidden == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["-n", "logical", "--dist", "worksteal"]),
        (["--fast", "tests/pins"], ["-n", "logical", "--dist", "worksteal", "--fast", "tests/pins"]),
        (["-n", "0"], ["-n", "logical", "--dist", "worksteal", "-n", "0"]),
        (["-p", "no:xdist"], ["-p", "no:xdist"]),
    ],
)
def test_tests_run_on_all_cores_unless_told_otherwise(given: list[str], expected: list[str]) -> None:
    assert arguments(given) == ["-m", "pytest", *expected]


def test_one_option_leaves_out_what_is_slow() -> None:
    file = "tests/test_bounded_commands.py"
    words = ["-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist"]
    assert command.run([sys.executable, *words, file], ROOT).returncode == 0
    assert command.run([sys.executable, *words, "--fast", file], ROOT).returncode == pytest.ExitCode.NO_TESTS_COLLECTED
