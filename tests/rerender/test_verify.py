"""`rerender --verify` with a program on PATH that stands in for conda-smithy: how it is called, what is compared."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment, run, tool
from tests.support.needs import needs
from tests.support.smithy_release import write_release

FEEDSTOCK = Path(__file__).parent / "solver-feedstock"
pytestmark = needs("system", os.name == "posix", "the stand-in program is a script for POSIX")

#: Takes conda-smithy's options, and writes the files that FILES names into the copy that it is given.
STAND_IN = f"""#!{sys.executable}
import argparse, pathlib, shutil
parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["rerender"])
parser.add_argument("--no-check-uptodate", action="store_true", required=True)
parser.add_argument("--feedstock_directory", type=pathlib.Path, required=True)
parser.add_argument("--exclusive-config-file", type=pathlib.Path, required=True)
options = parser.parse_args()
assert options.exclusive_config_file.is_file()
folder = options.feedstock_directory / ".ci_support"
shutil.rmtree(folder, ignore_errors=True)
shutil.copytree(pathlib.Path(__file__).parent / "files", folder)
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """A feedstock with a pinning beside it, rerendered."""
    shutil.copytree(FEEDSTOCK, tmp_path / "solver-feedstock")
    return tmp_path / "solver-feedstock"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The folder of the stand-in, which writes what lies in `files` beside it."""
    folder = tmp_path / "bin"
    (folder / "files").mkdir(parents=True)
    (folder / "conda-smithy").write_text(STAND_IN)
    (folder / "conda-smithy").chmod(0o755)
    return folder


def rerender(feedstock: Path, *options: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = environment(PATH=f"{path}:/usr/bin:/bin" if path else "/nonexistent")
    return run(tool("rerender", str(feedstock), "--pinning", "none", *options), variables=variables)


def test_equal_files_are_counted_and_nothing_is_written(feedstock: Path, program: Path) -> None:
    rerender(feedstock)
    shutil.rmtree(program / "files")
    shutil.move(feedstock / ".ci_support", program / "files")
    number = len(list((program / "files").glob("*.yaml")))
    run = rerender(feedstock, "--verify", path=program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert f"same files: {number} (conda-smithy wrote {number}, feedstock-tools {number})" in run.stderr
    assert not (feedstock / ".ci_support").exists()


def test_a_difference_is_shown_and_exits_with_1(feedstock: Path, program: Path) -> None:
    (program / "files" / "linux_64_.yaml").write_text("c_compiler:\n- other\n")
    run = rerender(feedstock, "--verify", path=program)
    assert run.returncode == 1
    assert "--- conda-smithy/.ci_support/linux_64_.yaml" in run.stdout
    assert "-- other" in run.stdout


def test_with_a_release_whole_trees_are_compared(feedstock: Path, program: Path, tmp_path: Path) -> None:
    release = str(write_release(tmp_path / "release"))
    rerendered = tmp_path / "rerendered" / feedstock.name
    shutil.copytree(feedstock, rerendered)
    assert rerender(rerendered, "--smithy", release).returncode == 0
    readme = rerendered / "README.md"
    assert "definitionId=None" in readme.read_text()
    (feedstock / "README.md").write_text("definitionId=4711\n")
    (program / "conda-smithy").write_text(f"#!/bin/sh\nrm -r $4/.ci_support; cp -R {rerendered}/. $4\n")
    same = rerender(feedstock, "--verify", "--smithy", release, path=program)
    assert (same.returncode, same.stdout) == (0, ""), same.stderr
    assert "could not look up the number at Azure; it is not compared" in same.stderr
    (rerendered / ".scripts/build_steps.sh").chmod(0o644)
    (rerendered / "more").write_text("more\n")
    readme.write_text(readme.read_text() + "another line\n")
    other = rerender(feedstock, "--verify", "--smithy", release, path=program)
    assert other.returncode == 1
    assert "-another line\n" in other.stdout
    assert ".scripts/build_steps.sh: mode -x of conda-smithy's is +x here\n" in other.stdout
    assert "more: only of conda-smithy\n" in other.stdout


def test_a_conda_smithy_that_fails_leaves_its_log(feedstock: Path, program: Path) -> None:
    (program / "conda-smithy").write_text("#!/bin/sh\necho no pinning today\nexit 3\n")
    run = rerender(feedstock, "--verify", path=program)
    assert run.returncode == 1
    assert "conda-smithy exited with 3" in run.stderr
    log = Path(next(word for word in run.stderr.split() if word.endswith(".log:")).rstrip(":"))
    assert log.read_text() == "no pinning today\n"
    log.unlink()


def test_without_conda_smithy_it_says_where_it_comes_from(feedstock: Path) -> None:
    run = rerender(feedstock, "--verify")
    assert run.returncode == 2
    assert "conda-smithy is not on PATH" in run.stderr
