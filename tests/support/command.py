"""feedstock-tools in a process of its own, as a user calls it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from unittest import mock

from feedstock_tools.cli import program
from feedstock_tools.cli.completion import PROGRAM
from tests.support.paths import ROOT

_RUN = "import runpy; runpy.run_module('feedstock_tools', run_name='__main__', alter_sys=True)"


#: Runs a command and writes how it ended to a file. The system counts the memory of the process that starts another as
#: that one's, and this program takes little, which a process of pytest does not.
_MEASURE = """
import json, os, sys, time
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    wall, seconds = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    json.dump([os.waitstatus_to_exitcode(status), wall, seconds, usage.ru_maxrss], file)
"""


@dataclass
class Measured:
    """A command that ended: status, output, seconds, seconds of processor time, and bytes of its largest process."""

    returncode: int
    stdout: str
    stderr: str
    wall: float
    seconds: float
    memory: int


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
    own = environment() if variables is None else variables
    return subprocess.run(command, cwd=folder, env=own, stdin=stdin, capture_output=True, text=True, check=False)


def here(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call feedstock-tools in this process: its answer is the same, and a start takes most commands longer than work.

    Not for what a process is: signals, limits, closed streams, start-up.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(folder or Path.cwd()),
        mock.patch.object(sys, "argv", [PROGRAM, *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status = program._status(program._group, PROGRAM, None)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(tool(*arguments), status, *texts)


def measured(
    command: list[str],
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    stdin: int | IO[str] = subprocess.DEVNULL,
) -> Measured:
    """Run a command to its end and measure what it and its children use."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "measured.json")
        words = [sys.executable, "-I", "-S", "-c", _MEASURE, str(file), *command]
        own = environment() if variables is None else variables
        ended = subprocess.run(words, cwd=folder, env=own, stdin=stdin, capture_output=True, text=True, check=False)
        status, wall, seconds, memory = json.loads(file.read_text())
    return Measured(
        status, ended.stdout, ended.stderr, wall, seconds, memory * (1 if sys.platform == "darwin" else 1024)
    )


def start(
    command: list[str],
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.STDOUT,
) -> subprocess.Popen[str]:
    """Start a command and leave it running; by default its output comes through one pipe."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment() if variables is None else variables,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
    )
