"""The lease of an attempt: until when a host may go on with it, in a file that the attempt's supervisor reads.

The clock counts while the machine sleeps, and is the same for all its processes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

#: How often the file is read, in seconds.
_EVERY = 0.25
_FILE = "lease"


def clock() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def renew(attempt: Path, until: float) -> None:
    """Let an attempt go on until a time of `clock`.

    Args:
        attempt: its folder.
    """
    file = os.open(attempt / _FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{until:020.3f}".encode())  # of one length, so no reader sees a part of two
    finally:
        os.close(file)


class Lease:
    """The lease of an attempt, as its supervisor sees it."""

    def __init__(self, attempt: Path) -> None:
        self._file = attempt / _FILE
        self._next = 0.0
        self._over = False

    def is_over(self) -> bool:
        """Whether the attempt must end; an unreadable lease is over."""
        now = clock()
        if not self._over and now >= self._next:
            self._next = now + _EVERY
            try:
                self._over = now > float(self._file.read_text())
            except (OSError, ValueError):
                self._over = True
        return self._over
