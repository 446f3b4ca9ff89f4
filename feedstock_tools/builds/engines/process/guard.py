"""Limiting the process of a build to its share of cores, memory and time, and ending it with its run.

The kernel limits the cores and shows a process only those that it may use: make, ninja, cmake, cargo and bazel ask
it for their number of jobs. A control group limits the memory if one can be created; otherwise a limit on the
data of each single process does, and a check of all of them together.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from feedstock_tools.builds.engines.process.memory_group import MemoryGroup
from feedstock_tools.builds.engines.process.supervision import descendants
from feedstock_tools.errors import WorkError

#: The interval between checks of a build's memory, in seconds.
LOOK_EVERY = 0.25
_NICE = 5
_PROC = Path("/proc")


class Stopped(BaseException):
    """The run is over, and its builds must end; not an error of a build."""


class OutOfMemoryError(WorkError):
    """A build took more memory than its share."""


class OutOfTimeError(WorkError):
    """A build took longer than it may."""


@dataclass(kw_only=True)
class Guard:
    """The limits of one build; `attach` it to the build's process, then call `look` regularly.

    Attributes:
        cores: the numbers of its cores; none for all.
        memory: the limit in bytes for all its processes together; None for no limit.
        seconds: the time limit, from `attach` on; None for no limit.
        idle: the time limit for processes that wait without computing, in seconds; None for no limit.
        stop: a file descriptor that becomes readable when the run is over.
        peak: the peak memory of all its processes together, in bytes; the owner may reset it.
    """

    cores: frozenset[int] = frozenset()
    memory: int | None = None
    seconds: float | None = None
    idle: float | None = None
    stop: int | None = None
    peak: int = 0
    _root: int | None = None
    _group: MemoryGroup | None = None
    _began: float = 0.0
    _next: float = field(default=0.0)
    _computed: tuple[int, float] = (0, 0.0)

    def attach(self, pid: int) -> None:
        """Apply the limits to a process that has just been started, and to its descendants."""
        self._root, self._began = pid, time.monotonic()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
        if self.cores and sys.platform == "linux":
            with suppress(OSError):
                os.sched_setaffinity(pid, self.cores)
        if self.memory is not None:
            self._group = MemoryGroup.make(self.memory)
            if self._group is None or not self._group.take(pid):
                _limit_data(pid, self.memory)

    def detach(self) -> None:
        """Release resources after the build's processes have ended."""
        if self._group is not None:
            self._group.remove()
        self._root = None

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for its use of memory."""
        return self._group is not None and self._group.ran_out

    def look(self) -> None:
        """Check the build, if it is time to.

        Raises:
            OutOfTimeError: it exceeds its time limit.
            OutOfMemoryError: it exceeds its memory limit; only without a control group.
        """
        moment = time.monotonic()
        if self._root is None or moment < self._next:
            return
        self._next = moment + LOOK_EVERY
        if self.seconds is not None and moment - self._began > self.seconds:
            raise OutOfTimeError(f"it was stopped after its time limit of {self.seconds:g} s, which --timeout sets")
        if self.idle is not None and self._waits(moment) > self.idle:
            raise OutOfTimeError(f"it was stopped: for {self.idle:g} s none of its processes has computed anything")
        used = _memory_of(self._root) if _PROC.is_dir() else 0
        self.peak = max(self.peak, used)
        if self.memory is not None and self._group is None and used > self.memory:
            limit = self.memory >> 20
            raise OutOfMemoryError(f"its processes took {used >> 20} MiB, more than its limit of {limit} MiB")

    def _waits(self, moment: float) -> float:
        """For how long no process below the first one, its supervisor, has used processor time; in seconds."""
        assert self._root is not None  # noqa: S101  (asked by the caller)
        ticks = sum(map(_ticks_of, _below(self._root)))
        if ticks != self._computed[0] or not self._computed[1]:
            self._computed = (ticks, moment)
        return moment - self._computed[1]


def _ticks_of(pid: int) -> int:
    """The processor time of a process, and of its children that have ended, in ticks."""
    with suppress(OSError, ValueError, IndexError):
        return sum(map(int, (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[11:15]))
    return 0


def _memory_of(root: int) -> int:
    """The memory of a process and its descendants in bytes; shared pages count for each."""
    pages = 0
    for pid in (root, *_below(root)):
        with suppress(OSError, ValueError, IndexError):
            pages += int((_PROC / str(pid) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _below(root: int) -> list[int]:
    """The processes below `root`, without a look at all others of this machine if the kernel lists children.

    A process that ends meanwhile may hide its children until the next look.
    """
    if not _lists_children():
        return descendants(root)
    found: list[int] = []
    pending = [root]
    while pending:
        children: list[int] = []
        tasks = _PROC / str(pending.pop()) / "task"
        with suppress(OSError):
            for task in tasks.iterdir():
                with suppress(OSError):
                    children += map(int, (task / "children").read_text().split())
        found += children
        pending += children
    return found


@cache
def _lists_children() -> bool:
    return (_PROC / "thread-self" / "children").exists()


def _limit_data(pid: int, memory: int) -> None:
    """Limit the data of a process and of each of its descendants.

    The address space is not limited, since some programs (Go's, Java's, sanitizers) reserve much more than they use.
    """
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
