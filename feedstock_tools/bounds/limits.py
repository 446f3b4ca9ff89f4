"""Limits on work with untrusted input: memory, processor time, files; and how a user widens them for a run.

Counting guards (steps of a template, sizes of values) ask `most` for their limits; the operating system enforces the
rest (`bounds.supervision`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.errors import InputError

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
#: A child of a busy machine takes this many times its processor time, and at least these seconds.
_SLOWER, _SHORTEST_WAIT = 10, 60.0
#: The hint for users whose input exceeds a bound.
LIFTING = "If you trust it, set FEEDSTOCK_TOOLS_BOUNDS=10 for bounds ten times as wide, or off for none, in one run."
#: The variable for it.
VARIABLE = "FEEDSTOCK_TOOLS_BOUNDS"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of some work; None for the limit of the process.

    Attributes:
        step_memory: bytes that one step, such as rendering a template, may add to the memory of the process.
        step_seconds: processor time of one step.
        memory: bytes of data of the process.
        seconds: processor time of the process.
        file_size: bytes of each file that it writes.
        open_files: the maximum number of open files.
    """

    step_memory: int | None = 256 * _MIB
    step_seconds: float | None = 3
    memory: int | None = 2 * _GIB
    seconds: float | None = 120
    file_size: int | None = _GIB
    open_files: int | None = 512

    @property
    def longest(self) -> float | None:
        """How long a child may take that waits for something rather than computes, in seconds."""
        return None if self.seconds is None else max(_SHORTEST_WAIT, _SLOWER * self.seconds)

    def times(self, scale: float) -> Bounds:
        """The same, wider."""
        if scale == float("inf"):
            return Bounds(None, None, None, None, None, None)
        values = {name: getattr(self, name) for name in ("step_memory", "step_seconds", "memory", "seconds")}
        return replace(self, **{name: value and type(value)(value * scale) for name, value in values.items()})


#: For a command that reads a feedstock: several times what the largest feedstock of conda-forge takes.
READING = Bounds()
#: For a command that also solves or unpacks: conda-forge's repodata alone takes gigabytes.
SOLVING = Bounds(memory=16 * _GIB, seconds=4 * 3600, file_size=64 * _GIB, open_files=None)


class BoundError(InputError):
    """The input exceeds a bound that no known recipe exceeds; the hint explains how to lift the bound."""

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        super().__init__(message, path=path, line=line, hint=LIFTING)


_scale = 1.0


def widen(wish: str) -> None:
    """Widen all bounds of this process and of those that it forks.

    Args:
        wish: a number of at least 1, `off`, or nothing for no change: the value of a variable that the command line
            reads.

    Raises:
        InputError: it is invalid.
    """
    global _scale
    text = wish.strip().lower() or "1"
    try:
        scale = float("inf") if text == "off" else float(text)
    except ValueError:
        scale = 0.0
    if not scale >= 1:
        raise InputError(f"{VARIABLE} is '{wish}'", hint="Set it to a number of at least 1, or to off.")
    _scale = scale


def factor() -> float:
    """The factor for all bounds: 1 by default, the user's own, or infinity for no bounds."""
    return _scale


def most(count: int) -> float:
    """The bound of a counting guard, times the user's factor."""
    return count * factor()
