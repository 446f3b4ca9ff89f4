"""Cores, memory and time: the machine's resources, and the shares of a run and a build."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: The default time limit of a row in seconds: several times the longest builds of conda-forge.
BUILD_SECONDS = 48 * 3600.0
#: The default number of bytes of a log file: far above the longest logs of conda-forge.
LOG_LIMIT = 1 << 30

#: The default share of the machine's memory for builds: the desktop needs the rest.
_OF_BUILDS = 0.9
#: The default memory of one compiler job, in bytes.
_PER_JOB = 1 << 30
#: The memory of a machine that does not report its own, in bytes.
_ASSUMED = 8 << 30
#: The file with a container's share of the machine's memory.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit for all builds together: its cores, by their numbers in the system, and bytes of memory."""

    cores: tuple[int, ...]
    memory: int

    @classmethod
    def of_machine(cls, cores: int | None = None, memory: int | None = None) -> Capacity:
        """That number of cores and bytes, limited to those of the machine; default: its cores, most of its memory."""
        cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        usable = tuple(cpus)
        return cls(usable[: cores or len(usable)], min(memory or int(_memory() * _OF_BUILDS), _memory()))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    `jobs` is the maximum number of parallel rows, `seconds` the time limit of each (None: no limit), `retries` the
    maximum number of retries after a failure that a retry may fix. With `fail_fast` nothing starts after a failure.
    `log_limit` is the maximum number of bytes of each log file.
    """

    jobs: int = 1
    seconds: float | None = BUILD_SECONDS
    retries: int = 2
    fail_fast: bool = False
    log_limit: int = LOG_LIMIT


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one build: its cores, by their numbers, bytes of memory, and the number of jobs for its tools."""

    cores: tuple[int, ...]
    memory: int
    jobs: int


def jobs_of(cores: int, memory: int, per_job: int | None) -> int:
    """The number of parallel compiler jobs on some cores that fit into the memory."""
    return max(1, min(cores, memory // (per_job or _PER_JOB)))


def _memory() -> int:
    """The memory of this machine, or of this container, in bytes."""
    if not hasattr(os, "sysconf"):  # Windows does not report it without a library: a guess on the safe side
        return _ASSUMED
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # there is no such file, or it contains "max"
            total = min(total, int(limit.read_text()))
    return total
