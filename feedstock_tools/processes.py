"""Processes: which one a record belongs to, to distinguish dead runs from live ones, and the command of a worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from feedstock_tools.data import PACKAGE


@cache
def this_machine() -> str:
    """The name of this machine in its network."""
    import socket

    return socket.gethostname()


def this_process() -> str:
    """This process as `pid:starttime`; the time (ticks since the machine started) is empty without /proc."""
    return f"{os.getpid()}:{_own_start()}"


@cache
def _own_start() -> str:
    """Asked with each line of a build's output."""
    return start_time(os.getpid())


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_own_start.cache_clear)


def process_lives(process: str, machine: str) -> bool | None:
    """Whether a process that a record names is alive; None if unknown, as on another machine."""
    number, _, started = process.partition(":")
    if machine != this_machine() or not _is_number(number) or sys.platform == "win32":
        return None  # on Windows `os.kill` would end it
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        pass
    state, now = _state_and_start(int(number))
    return state not in ("Z", "X") and (not started or now == started)


def start_time(pid: int) -> str:
    """When a process started, in ticks since the machine started; empty if unknown."""
    return _state_and_start(pid)[1]


def _state_and_start(pid: int) -> tuple[str, str]:
    """The state of a process and its start; `Z` has ended, but nobody has asked for its status, as in a container
    whose first process does not care for orphans."""
    try:
        # The second field is the program's name in parentheses, which may hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 20 and int(text) > 0


def program_of_the_user(name: str, environment: Mapping[str, str]) -> str | None:
    """A program from an absolute folder of PATH: a feedstock may hold one of that name. None without it."""
    import shutil

    places = [each for each in environment.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(places))


#: The folder that contains this program's own package.
PACKAGES = PACKAGE.parent
#: The program of a worker. Its arguments: the folders of packages, with colons between them; the module; the arguments
#: of its `main`. By default, collecting garbage would take a tenth of its time.
_START = (
    "import gc, sys; from importlib import import_module; sys.path[:0] = sys.argv[1].split(':');"
    "gc.set_threshold(50_000, 20, 20);"
    "sys.exit(import_module(sys.argv[2]).main(*sys.argv[3:]))"
)


def worker_command(module: str, *arguments: str) -> list[str]:
    """The command that calls `main` of a module of this program with some strings, in a process of this Python.

    That process runs the same code in whatever folder it starts, with the packages of this one, which may come from a
    `PYTHONPATH` that it does not inherit. Its exit status is the result of `main`.
    """
    places = [str(PACKAGES), *(place for place in sys.path if place and ":" not in place)]
    return [sys.executable, "-P", "-c", *worker_words(places, module, *arguments)]


def worker_words(places: Sequence[str], module: str, *arguments: str) -> list[str]:
    """The arguments after `python -P -c` to do the same with packages in other folders."""
    return [_START, ":".join(places), module, *arguments]
