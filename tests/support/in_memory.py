"""Temporary folders in memory: tests make and remove many files, and SQLite waits for a disk after each change.

On ext4 a sixth of the processor time of builds went into the search for inodes that were not deleted a moment ago.
"""

from __future__ import annotations

import os
from pathlib import Path

#: A file system in memory that Linux has.
_PLACE = Path("/dev/shm")
_MEMORY = Path("/proc/meminfo")
#: What must be free in it, and of the machine's memory, in bytes. The tests take some hundred megabytes at a time.
_ROOM, _SPARE = 4 << 30, 8 << 30


def folder_in_memory(place: Path = _PLACE, memory: Path = _MEMORY) -> Path | None:
    """A folder in memory where the tests have room and may run programs; None if this machine has none.

    Args:
        memory: a file like `/proc/meminfo`.
    """
    try:
        system = os.statvfs(place)
        lines = memory.read_text(encoding="ascii").splitlines()
    except (OSError, AttributeError):  # another system
        return None
    sizes = {name: int(size.split()[0]) * 1024 for name, _, size in (line.partition(":") for line in lines)}
    fits = system.f_bavail * system.f_frsize >= _ROOM and sizes.get("MemAvailable", 0) >= _SPARE
    runs = not system.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK | os.X_OK)
    return place if fits and runs else None
