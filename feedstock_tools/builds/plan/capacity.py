"""Cores, memory and time: what the machine has, and what a run and a build get of it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Capacity", "Limits", "Share", "jobs_of"]

#: Of the machine's memory that builds get where nothing is said: the desk needs the rest.
_OURS = 0.9
#: What one job of a compiler takes where nothing is said.
_PER_JOB = 1 << 30
#: Where a container says how much of the machine's memory it has.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Capacity:
    """What builds may use together: the numbers of cores, and bytes of memory."""

    cores: tuple[int, ...]
    memory: int

    @classmethod
    def of_machine(cls, cores: int | None = None, memory: int | None = None) -> Capacity:
        """As many cores and bytes as are given, as far as the machine has them; else its cores and most memory."""
        known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        here = tuple(known)
        return cls(here[: cores or len(here)], min(memory or int(_memory() * _OURS), _memory()))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run is held to.

    `jobs` is how many rows are built at once, `seconds` how long each may take (None for ever), `retries` how often one
    that failed is tried again where that can help. With `fail_fast` nothing is begun after a failure.
    """

    jobs: int = 1
    seconds: float | None = None
    retries: int = 2
    fail_fast: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """What one build is given: the numbers of its cores, bytes of memory, and how many jobs its tools may run."""

    cores: tuple[int, ...]
    memory: int
    jobs: int


def jobs_of(cores: int, memory: int, per_job: int | None) -> int:
    """How many jobs of a compiler run at once on some cores, so that they fit into the memory."""
    return max(1, min(cores, memory // (per_job or _PER_JOB)))


def _memory() -> int:
    """Bytes of memory that this machine, or the container that this runs in, has."""
    if not hasattr(os, "sysconf"):
        return 8 << 30
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it is "max"
            total = min(total, int(limit.read_text()))
    return total
