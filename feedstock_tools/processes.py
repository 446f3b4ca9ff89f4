"""Which machine and which process something belongs to, to distinguish dead runs from live ones."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

__all__ = ["process_lives", "start_time", "this_machine", "this_process"]


@cache
def this_machine() -> str:
    """The name of this machine in its network."""
    import socket

    return socket.gethostname()


def this_process() -> str:
    """This process as `pid:starttime`; the time (ticks since the machine started) is empty without /proc."""
    return f"{os.getpid()}:{start_time(os.getpid())}"


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
    return not started or start_time(int(number)) == started


def start_time(pid: int) -> str:
    """When a process started, in ticks since the machine started; empty if unknown."""
    try:
        # The second field is the program's name in parentheses, which may hold spaces and parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 20 and int(text) > 0
