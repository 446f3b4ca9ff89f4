"""Holding the process of a build to its share while it runs: cores, memory, time; and ending it with its run.

The cores are held by the kernel, which shows a process no more than it may use: make, ninja, cmake, cargo and bazel ask
it for their number of jobs. The memory is held by a control group where one can be made; elsewhere by a limit on the
data of each single process, and by looking at all of them together.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from feedstock_tools.builds.engines.process.memory_group import MemoryGroup
from feedstock_tools.builds.engines.process.supervision import descendants
from feedstock_tools.errors import WorkError

__all__ = ["LOOK_EVERY", "Guard", "OutOfMemoryError", "OutOfTimeError", "Stopped"]

#: How often the memory of a build is looked at, in seconds.
LOOK_EVERY = 0.25
_NICE = 5
_PROC = Path("/proc")


class Stopped(BaseException):
    """The run is over, and its builds are to end; not an error of a build."""


class OutOfMemoryError(WorkError):
    """A build took more memory than its share."""


class OutOfTimeError(WorkError):
    """A build took longer than it may."""


@dataclass
class Guard:
    """What one build is held to; `attach` it to the build's process, then ask it to `look` now and then.

    Attributes:
        cores: the numbers of the cores that it may run on; none for all.
        memory: bytes that its processes may take together; None for no limit.
        seconds: how long it may take, from `attach` on; None for no limit.
        stop: a file descriptor that becomes readable when the run is over.
        peak: the most memory that its processes were seen to take together, in bytes; the owner may set it back.
    """

    cores: frozenset[int] = frozenset()
    memory: int | None = None
    seconds: float | None = None
    stop: int | None = None
    peak: int = 0
    _root: int | None = None
    _group: MemoryGroup | None = None
    _began: float = 0.0
    _next: float = field(default=0.0)

    def attach(self, pid: int) -> None:
        """Hold a process that has just been started, and all that it will start."""
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
        """Let go, once the build's processes have ended."""
        if self._group is not None:
            self._group.remove()
        self._root = None

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for the memory it took."""
        return self._group is not None and self._group.ran_out

    def look(self) -> None:
        """Look at the build, if it is time to.

        Raises:
            OutOfTimeError: it takes longer than it may.
            OutOfMemoryError: it takes more than it may; only where no control group sees to that.
        """
        moment = time.monotonic()
        if self._root is None or moment < self._next:
            return
        self._next = moment + LOOK_EVERY
        if self.seconds is not None and moment - self._began > self.seconds:
            raise OutOfTimeError(f"it took longer than the {self.seconds:g} s that a build may take, and was ended")
        used = _memory_of(self._root) if _PROC.is_dir() else 0
        self.peak = max(self.peak, used)
        if self.memory is not None and self._group is None and used > self.memory:
            limit = self.memory >> 20
            raise OutOfMemoryError(f"its processes took {used >> 20} MiB, more than its limit of {limit} MiB")


def _memory_of(root: int) -> int:
    """Bytes of memory that a process and its descendants take; pages that they share are counted for each."""
    pages = 0
    for pid in (root, *descendants(root)):
        with suppress(OSError, ValueError, IndexError):
            pages += int((_PROC / str(pid) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _limit_data(pid: int, memory: int) -> None:
    """Limit what a process, and each that it starts, may take for its data.

    Not its address space, of which some programs (Go's, Java's, sanitizers) reserve much more than they ever use.
    """
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
