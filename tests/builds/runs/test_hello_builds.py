"""The tour's commands: its spec becomes packages, built with CMake and pip on the stand-in channel, and tested."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.compilers import lend_tools
from tests.support.feedstocks import HERE, copy_of_example
from tests.support.needs import needs
from tests.support.paths import ROOT

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"

pytestmark = [
    pytest.mark.slow,
    needs("system", HERE.subdir == "linux-64", "the tour shows builds for linux-64"),
    needs("system", PYTHON in ("3.11", "3.12", "3.13"), "the spec of the tour has Python 3.11 to 3.13"),
]


def _commands() -> list[str]:
    """The tour's commands on hello, without those that fetch and use a CUDA compiler."""
    text = (ROOT / "docs" / "five-minutes.md").read_text(encoding="utf-8")
    block = text[text.index("$ cp -r examples/hello .") :].partition("```")[0]
    lines = [line.partition("#")[0].removeprefix("$ ").strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith("feedstock-tools ") and "cuda" not in line]


def test_the_commands_of_the_tour_build_and_test_hello(tmp_path: Path) -> None:
    copy_of_example("hello", tmp_path)
    lend_tools(tmp_path / "cache")
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert len(_commands()) == 5
    for line in _commands():
        words = [word.replace("py3.11", f"py{PYTHON}") for word in shlex.split(line)[1:]]
        channel = ("--channel", "stand-in") if words[0] == "build" else ()
        run = command.run(command.tool(*words, *channel), tmp_path, environment)
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr

    built = {
        path.name.partition("-1.0.0")[0] for path in tmp_path.glob("hello/build_artifacts/built-*/linux-64/*.conda")
    }
    assert built == {"libhello", "hello-base", "hello", "hello-cpu"}
    (log,) = tmp_path.glob("hello/build_artifacts/logs/*.log")
    assert log.read_text(encoding="utf-8").count("Hello from the CPU\n") == 2
