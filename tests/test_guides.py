"""The guides of the documentation: their commands, run in order from nothing, succeed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.paths import ROOT

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Commands that need what not every machine has, by their beginnings, and what that is.
_LEFT_OUT = {
    "feedstock-tools init PROJECT": "a project of your own",
    "feedstock-tools test linux_64_cuda12.9_py3.11 --gpu": "a GPU",
}

pytestmark = pytest.mark.skipif(Platform.here().subdir != "linux-64", reason="the guides build on linux-64")


def calls(page: str) -> list[str]:
    """The commands of a page that run anywhere, with the Python that runs the tests."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = [line.removeprefix("$ ") for block in _CONSOLE.findall(text) for line in block.splitlines()]
    assert [call for call in found if call in _LEFT_OUT]
    own = f"py{sys.version_info.major}.{sys.version_info.minor}"
    return [call.replace("py3.11", own) for call in found if call not in _LEFT_OUT]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["guide-start", "guide-gpu"])
def test_the_commands_of_a_guide_succeed(tmp_path: Path, page: str) -> None:
    for example in ("hello", "gpuprobe"):
        ignored = shutil.ignore_patterns("build_artifacts", "__pycache__")
        shutil.copytree(ROOT / "examples" / example, tmp_path / "examples" / example, ignore=ignored)
    program = tmp_path / "bin" / "feedstock-tools"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m feedstock_tools "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    script = "\n".join(["set -ex", *calls(page)])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=command.environment(PATH=path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
