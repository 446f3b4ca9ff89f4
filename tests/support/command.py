"""feedstock-tools in a process of its own, as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.support import warm
from tests.support.paths import ROOT

__all__ = ["environment", "patched", "run", "start", "tool"]

_RUN = "import runpy; runpy.run_module('feedstock_tools', run_name='__main__', alter_sys=True)"


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process, with the modules of this checkout before others, and more."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def tool(*arguments: str) -> list[str]:
    """The command that calls feedstock-tools with these arguments."""
    return [sys.executable, "-m", "feedstock_tools", *arguments]


def patched(program: str, *arguments: str) -> list[str]:
    """The same command after statements that change modules of feedstock-tools."""
    return [sys.executable, "-c", f"{program}\n{_RUN}", *arguments]


def run(
    command: list[str],
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    stdin: int | IO[str] = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its status.

    folder: where it starts (here, where None). variables: its whole environment (`environment()`, where None).
    """
    variables = environment() if variables is None else dict(variables)
    if command[:3] == tool() and warm.serves(variables):
        ended = warm.run(command[3:], folder, variables, stdin)
        return subprocess.CompletedProcess(command, ended.status, ended.stdout, ended.stderr)
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def start(
    command: list[str],
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.STDOUT,
) -> subprocess.Popen[str]:
    """Start a command and leave it running; by default its output comes through one pipe."""
    variables = environment() if variables is None else dict(variables)
    if command[:3] == tool() and warm.serves(variables):
        return warm.Started(command[3:], folder, variables, stdout, stderr)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
    )
