"""A control group of the kernel for the memory of one build: Linux, version 2 if delegated, else version 1."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from os import getpid
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_numbers = count()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A group for a build: its processes together get no more memory than its limit."""

    folder: Path
    version: int

    @classmethod
    def make(cls, limit: int) -> MemoryGroup | None:
        """A group with a limit in bytes; None if this user may not create one on this machine."""
        if sys.platform != "linux":
            return None
        for parent, version in _parents():
            folder = parent / f"feedstock-tools-{getpid()}-{next(_numbers)}"
            with suppress(OSError):
                folder.mkdir()
                try:
                    _limit(folder, version, limit)
                    return cls(folder, version)
                except OSError:
                    folder.rmdir()
        return None

    def take(self, pid: int) -> bool:
        """Put a process into the group, with all its later children; false if that fails."""
        try:
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    @property
    def ran_out(self) -> bool:
        """Whether the kernel killed a process for exceeding the limit."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        try:
            counts = dict(line.split(" ", 1) for line in (self.folder / name).read_text().splitlines())
        except (OSError, ValueError):
            return False
        return int(counts.get("oom_kill", "0")) > 0

    def remove(self) -> None:
        """Remove it once all its processes are gone; otherwise it stays until the machine restarts."""
        with suppress(OSError):
            self.folder.rmdir()


def _parents() -> list[tuple[Path, int]]:
    """Groups below which a new one can be created, the likeliest first: the own one, then its parents."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return []
    found: list[tuple[Path, int]] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" and (_ROOT / "cgroup.controllers").exists():
            own = _ROOT / path.lstrip("/")
            # A group that holds processes gives its children no memory controller, so a sibling of the own group is
            # used.
            found += [(place, 2) for place in (own, own.parent) if _gives_memory(place)]
        elif "memory" in controllers.split(","):
            own = _ROOT / "memory" / path.lstrip("/")
            found += [(place, 1) for place in (own, _ROOT / "memory")]
    return found


def _gives_memory(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _limit(folder: Path, version: int, limit: int) -> None:
    (folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).write_text(str(limit))
    # Without swap too: a build that swaps blocks the machine as surely as one that uses all memory.
    swap = ("memory.swap.max", 0) if version == 2 else ("memory.memsw.limit_in_bytes", limit)
    with suppress(OSError):
        (folder / swap[0]).write_text(str(swap[1]))
