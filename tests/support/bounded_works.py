"""Works that end in the ways in which bounded work can end; functions of a module, so that they can be sent away."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path

from feedstock_tools.bounds.limits import step
from feedstock_tools.errors import InputError


def about(value: object) -> tuple[int, str, object]:
    """The process that works, its folder, and the value."""
    return os.getpid(), str(Path.cwd()), value


def imports(module: str, succeeds: bool) -> None:
    """Import a module, and refuse an input or not."""
    importlib.import_module(module)
    if not succeeds:
        raise InputError("imported")


def knows(module: str) -> bool:
    """Whether the process that works has a module imported."""
    return module in sys.modules


def refused() -> None:
    """Refuse an input."""
    raise InputError("is wrong", path=Path("a"), line=3)


def endless() -> None:
    """Work on a file without end."""
    with step(Path("b")):
        while True:
            pass


def greedy() -> int:
    """Ask for 150 MB for a file."""
    with step(Path("c")):
        return len(bytearray(150 * 10**6))


def crashes() -> None:
    """End as an engine without memory does."""
    os.abort()


def sleeps(file: str) -> None:
    """Write the process that works to a file, and wait."""
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)
