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

_RUN = "import runpy; runpy.run_module('feedstock_tools', run_name='__main__', alter_sys=True)"
#: After statements that a warm process can run as well.
_CHANGED_RUN = f"\n{_RUN}  # in any process"


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process, with the modules of this checkout before others, and more."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def tool(*arguments: str) -> list[str]:
    """The command that calls feedstock-tools with these arguments."""
    return [sys.executable, "-m", "feedstock_tools", *arguments]


def patched(program: str, *arguments: str) -> list[str]:
    """The same command after statements that change modules of feedstock-tools, before they are imported."""
    return [sys.executable, "-c", f"{program}\n{_RUN}", *arguments]


def changed(program: str, *arguments: str) -> list[str]:
    """The same command after statements that change modules of feedstock-tools, which have been imported."""
    return [sys.executable, "-c", program + _CHANGED_RUN, *arguments]


def _asked(command: list[str]) -> tuple[str, list[str]] | None:
    """What to ask a warm process for, statements and arguments, if it can run the command."""
    if command[:3] == tool():
        return "", command[3:]
    if command[1] == "-c" and command[2].endswith(_CHANGED_RUN):
        return command[2].removesuffix(_CHANGED_RUN), command[3:]
    return None


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
    if (asked := _asked(command)) is not None and warm.serves(variables):
        program, arguments = asked
        ended = warm.run(arguments, folder, variables, stdin, program=program)
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
    if (asked := _asked(command)) is not None and warm.serves(variables):
        program, arguments = asked
        return warm.Started(arguments, folder, variables, stdout, stderr, program=program)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
    )
