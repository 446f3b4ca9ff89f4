"""The guides of the documentation and the tour: their commands, run in order from nothing, succeed."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.compilers import lend_tools
from tests.support.feedstocks import copy_of_example
from tests.support.needs import needs
from tests.support.paths import ROOT

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Commands that need what not every machine has, by their beginnings, and what that is.
_LEFT_OUT = {
    "feedstock-tools init PROJECT": "a project of your own",
    "feedstock-tools test linux_64_cuda12.9_py3.11 --gpu": "a GPU",
}
PYTHON = f"py{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(Platform.here().subdir != "linux-64", reason="the guides build on linux-64"),
]


def calls(page: str) -> list[str]:
    """The commands of a page that run anywhere."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = [line.removeprefix("$ ") for block in _CONSOLE.findall(text) for line in block.splitlines()]
    assert [call for call in found if call in _LEFT_OUT]
    return [call for call in found if call not in _LEFT_OUT]


def calls_of_the_tour() -> list[str]:
    """The tour's commands on hello, without those that fetch and use a CUDA compiler."""
    text = (ROOT / "docs" / "five-minutes.md").read_text(encoding="utf-8")
    block = text[text.index("$ cp -r examples/hello .") :].partition("```")[0]
    lines = [line.partition("#")[0].removeprefix("$ ").strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith("feedstock-tools ") and "cuda" not in line]


def run_all(lines: list[str], folder: Path) -> None:
    """Run commands one after the other from a folder, with the Python that runs the tests; each must succeed."""
    lend_tools(folder / "cache")
    environment = command.environment(XDG_CACHE_HOME=str(folder / "cache"))
    for line in lines:
        program, *words = shlex.split(line.replace("py3.11", PYTHON))
        if program == "cd":
            folder = folder / words[0]
        elif program == "cp":
            assert words[0] == "-r"
            shutil.copytree(folder / words[1], folder / words[2])
        else:
            assert program == "feedstock-tools"
            run = command.run(command.tool(*words), folder, environment)
            assert run.returncode == 0, f"{line}\n{run.stdout[-4000:]}{run.stderr[-2000:]}"


@needs("system", PYTHON in ("py3.11", "py3.12", "py3.13"), "the spec of the tour has Python 3.11 to 3.13")
def test_the_commands_of_the_first_guide_and_of_the_tour_build_and_test_hello(tmp_path: Path) -> None:
    copy_of_example("hello", tmp_path / "examples")
    guide, tour = calls("guide-start"), calls_of_the_tour()
    assert len(tour) == 5
    run_all([*guide, *(line for line in tour if line not in guide)], tmp_path)
    artifacts = tmp_path / "hello" / "build_artifacts"
    built = {path.name.partition("-1.0.0")[0] for path in artifacts.glob("built-*/linux-64/*.conda")}
    assert built == {"libhello", "hello-base", "hello", "hello-cpu"}
    (log,) = artifacts.glob("logs/*.log")
    assert log.read_text(encoding="utf-8").count("Hello from the CPU\n") == 2


def test_the_commands_of_the_guide_to_gpus_succeed(tmp_path: Path) -> None:
    copy_of_example("gpuprobe", tmp_path / "examples")
    run_all(calls("guide-gpu"), tmp_path)
    assert list((tmp_path / "examples" / "channel").rglob("*.conda"))
