"""Limiting the process of a build to its share of cores, memory and time, and ending it with its run.

The kernel limits the cores and shows a process only those that it may use: make, ninja, cmake, cargo and bazel ask
it for their number of jobs. A control group limits the memory if one can be created; otherwise a limit on the
data of each single process does, and a check of all of them together.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from os import getpid
from pathlib import Path

from feedstock_tools.builds.engines.process.supervision import descendants
from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import Locks

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_numbers = count()
#: The interval between checks of a build's memory, in seconds.
LOOK_EVERY = 0.25
_NICE = 5
_PROC = Path("/proc")


@contextmanager
def cores_apart(folder: Path, wanted: Sequence[int]) -> Iterator[frozenset[int]]:
    """The cores for a build: those wanted, or as many others where builds of another run have some of them.

    Args:
        folder: of the locks on the cores of this machine.
    """
    every = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ()
    with ExitStack() as stack:
        held: list[int] = []
        with suppress(WorkError):
            for core in dict.fromkeys((*wanted, *every)):
                if len(held) < len(wanted) and (locks := Locks.take(folder, [f"core {core}"])):
                    stack.enter_context(locks)
                    held.append(core)
        yield frozenset(held if len(held) == len(wanted) else wanted)


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
