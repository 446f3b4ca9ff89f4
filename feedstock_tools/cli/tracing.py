"""`--verbose`: the files that a command reads and the programs that it runs, each with its time.

Python reports them to an audit hook. What an engine reads by itself, such as a channel's index, is not among them; a
stage names it.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from feedstock_tools.data import PACKAGE
from feedstock_tools.stages import listen

#: Folders whose files are parts of programs and not input.
_OWN = tuple({os.path.realpath(folder) + os.sep for folder in (sys.prefix, sys.base_prefix, str(PACKAGE))})
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_WRITING = os.O_WRONLY | os.O_RDWR


class _Hook:
    """The hook; a file that is read again is not reported again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._known: set[str] = set()
        self._process = os.getpid()
        self._busy = False

    def __call__(self, event: str, arguments: Sequence[Any]) -> None:
        if self._busy or event not in ("open", "subprocess.Popen") or os.getpid() != self._process:
            return  # what forks print may be somebody's log
        self._busy = True  # printing may open files, too
        try:
            if event == "subprocess.Popen":
                self._say(f"runs {_command(arguments[1])}")
            elif (path := _input(*arguments)) and path not in self._known:
                self._known.add(path)
                self._say(f"reads {path}")
        finally:
            self._busy = False


def trace(say: Callable[[str], None]) -> None:
    """Report from now on what this process and its forks read, run and do; a hook stays until the process ends."""
    began = time.perf_counter()

    def report(text: str) -> None:
        say(f"{time.perf_counter() - began:7.3f} s  {text}")

    sys.addaudithook(_Hook(report))
    listen(report)


def _command(arguments: object) -> str:
    if isinstance(arguments, (list, tuple)):
        return shlex.join(os.fsdecode(each) for each in arguments)
    return str(arguments)


def _input(path: object, mode: str | None, flags: int) -> str | None:
    """The absolute path of a file that is opened to be read; None for others, and for those of programs."""
    if not isinstance(path, (str, bytes, os.PathLike)) or (flags or 0) & _WRITING:
        return None
    name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - no further look at the disk
    if name.startswith(_SYSTEM) or name.endswith((".py", ".pyc", ".so")) or name.startswith(_OWN):
        return None
    return name
