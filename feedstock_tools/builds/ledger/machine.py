"""Which machine and which process a build belongs to, to distinguish dead runs from live ones."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

__all__ = ["process_lives", "this_machine", "this_process"]


@cache
def this_machine() -> str:
    """The name of this machine in its network."""
    return socket.gethostname()


def this_process() -> str:
    """This process as `pid:starttime`; the time (ticks since the machine started) is empty without /proc."""
    return f"{os.getpid()}:{_start_time(os.getpid())}"


def process_lives(process: str, machine: str) -> bool | None:
    """Whether a process that a ledger names is alive; None if unknown, as on another machine."""
    number, _, started = process.partition(":")
    if machine != this_machine() or not number.isdecimal():
        return None
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        pass
    return not started or _start_time(int(number)) == started


def _start_time(pid: int) -> str:
    try:
        # The second field is the program's name in parentheses, which may hold spaces and parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
