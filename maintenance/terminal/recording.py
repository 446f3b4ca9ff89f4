"""Run commands in a pseudo-terminal, and note what they print and when."""

from __future__ import annotations

import os
import shlex
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

COLUMNS, ROWS = 100, 30


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed at a time, in seconds since its start."""

    seconds: float
    content: bytes


def record(command: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Printed]:
    """Run a command in a folder until it ends.

    Raises:
        RuntimeError: it ends with a traceback or is unknown; other errors are part of a session.
    """
    import fcntl  # which Windows lacks, as it does the others
    import pty
    import termios

    words = shlex.split(command)
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        _become(words, folder, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    whole = b""
    while content := _read(terminal):
        whole += content
        yield Printed(time.monotonic() - began, content)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    if status not in (0, 1) or b"Traceback" in whole:
        raise RuntimeError(f"{command}: {status}\n{whole.decode(errors='replace')}")


def _become(words: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    time.sleep(0.05)  # until the terminal has its size
    try:
        os.chdir(folder)
        os.execvpe(words[0], words, dict(environment))  # noqa: S606 - a program of the session, without a shell
    finally:
        os._exit(127)


def _read(terminal: int) -> bytes:
    """What comes next; nothing at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
