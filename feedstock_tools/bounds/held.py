"""A process under bounds that the operating system enforces: its limits, those of one step, and what ended it.

Linux enforces all of the bounds, macOS all but memory, Windows none: only the counting guards protect there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from feedstock_tools.bounds.limits import BoundError, Bounds, factor
from feedstock_tools.errors import FeedstockError, WorkError

#: The limits of this process, soft and hard, by number.
Limits: TypeAlias = "dict[int, tuple[int, int]]"

_MIB = 1024 * 1024
#: Bytes for each core in addition to a step's memory: stacks of threads that an engine may start.
_A_CORE = 10 * _MIB
#: The maximum age of the memory figure that a step starts from, in seconds of processor time.
_LOOK_EVERY = 0.01
#: The signals that end an engine that runs out of memory or meets one of its own faults.
_BREAKING = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE})


class Note:
    """The file that a child is working on, in memory that its parent can read after the child has ended.

    Args:
        file: the number of an open file that another process shares this way; -1 for memory that forks share.
    """

    size = 4096

    def __init__(self, file: int = -1) -> None:
        import mmap

        self._memory = mmap.mmap(file, self.size)

    def write(self, path: Path | None, in_step: bool) -> None:
        """Note the current file, or the last one."""
        text = os.fsencode(path)[:4000] if path is not None else b""
        self._memory[: len(text) + 2] = (b"1" if in_step else b"0") + text + b"\0"

    def read(self) -> tuple[Path | None, bool]:
        """The file, and whether a step was working on it."""
        text = self._memory[:].partition(b"\0")[0]
        return (Path(os.fsdecode(text[1:])) if text[1:] else None), text[:1] == b"1"


@dataclass(slots=True)
class _Held:
    """A process that runs under bounds: its earlier limits, and where it notes its current file for its parent.

    `data` is its data size in bytes when it `looked` last, in seconds of its processor time.
    """

    bounds: Bounds
    before: Limits
    note: Note
    data: int = 0
    looked: float = -1.0


_held: _Held | None = None


def is_held() -> bool:
    """Whether this process runs under bounds."""
    return _held is not None


class step:  # noqa: N801 - a context manager is used like a function
    """One step of bounded work, on the file at `path`; without effect in a process without bounds.

    Raises:
        BoundError: Python needed more memory than the step may take.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._before: Limits = {}

    def __enter__(self) -> None:
        if _held is not None:
            _held.note.write(self._path, True)
            self._before = _narrow(_held)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if _held is None:
            return
        _restore(self._before)
        _held.note.write(self._path, False)
        if isinstance(error, MemoryError):
            raise BoundError(_too_much_memory(_held.bounds.step_memory), path=self._path) from error


@contextlib.contextmanager
def released() -> Iterator[None]:
    """Lift the bounds of this process while it starts another program."""
    if _held is None:
        yield
        return
    import resource

    now = {kind: resource.getrlimit(kind) for kind in _held.before}
    _restore(_held.before)
    try:
        yield
    finally:
        _restore(now)


@contextlib.contextmanager
def bounded(bounds: Bounds) -> Iterator[None]:
    """Bind this process for a block, unless it is bound: for one that is alone with its work, as a bound ends it."""
    global _held
    if _held is not None or not hasattr(os, "fork"):
        yield
        return
    before = enter(bounds, Note())
    try:
        yield
    finally:
        _restore(before)
        _held = None


def enter(bounds: Bounds, note: Note) -> Limits:
    """Bind this process, within the user's factor. Sets only soft limits, which can be lifted for programs that it
    starts. Returns the limits before."""
    global _held
    import resource

    bounds = bounds.times(factor())

    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: bounds.memory,
        resource.RLIMIT_CPU: None if bounds.seconds is None else int(bounds.seconds) + 1,
        resource.RLIMIT_FSIZE: bounds.file_size,
        resource.RLIMIT_NOFILE: bounds.open_files,
    }
    _held = _Held(bounds, {kind: resource.getrlimit(kind) for kind in limits}, note)
    for kind, limit in limits.items():
        if limit is not None:
            _set(kind, limit, _held.before[kind])
    return _held.before


def renew() -> None:
    """Start the processor time of this bound process again from zero, for its next piece of work."""
    if _held is not None and _held.bounds.seconds is not None:
        import resource

        soft, hard = _held.before[resource.RLIMIT_CPU]
        end = int(time.process_time() + _held.bounds.seconds) + 1
        _restore({resource.RLIMIT_CPU: (end if soft == resource.RLIM_INFINITY else min(end, soft), hard)})


def _narrow(held: _Held) -> Limits:
    """Set the limits of a step; return the earlier ones."""
    import resource

    data, cpu = resource.RLIMIT_DATA, resource.RLIMIT_CPU
    before = {data: resource.getrlimit(data), cpu: resource.getrlimit(cpu)}
    now = time.process_time()
    if held.bounds.step_memory is not None:
        if now - held.looked > _LOOK_EVERY:
            held.looked, held.data = now, _data()
        _set(data, held.data + held.bounds.step_memory + _A_CORE * _cores(), before[data])
    if held.bounds.step_seconds is not None:
        _set(cpu, int(now + held.bounds.step_seconds) + 1, before[cpu])
    return before


@cache
def _cores() -> int:
    return os.cpu_count() or 1


def _set(kind: int, limit: int, now: tuple[int, int]) -> None:
    """Set a soft limit, if it is narrower than the current one."""
    import resource

    soft, hard = now
    if soft == resource.RLIM_INFINITY or limit < soft:
        try:
            resource.setrlimit(kind, (limit, hard))
        except (OSError, ValueError):  # a system that knows only the name of the limit
            return


def _restore(limits: Limits) -> None:
    import resource

    for kind, pair in limits.items():
        try:
            resource.setrlimit(kind, pair)
        except (OSError, ValueError):
            continue


def _data() -> int:
    """The current data size of this process in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - at every step
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def end_with_parent(pipe: int) -> None:
    """Make this process end with its parent: a signal (SIGIO) arrives when the parent's end of a pipe closes."""
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def reason_of(number: int, note: Note, bounds: Bounds) -> FeedstockError:
    """The error for a child that a signal ended."""
    wide = bounds.times(factor())
    path, in_step = note.read()
    if number == signal.SIGXCPU:
        seconds = wide.step_seconds if in_step else wide.seconds
        return BoundError(f"takes more than {seconds:g} s of processor time", path=path)
    if number in _BREAKING:
        memory = wide.step_memory if in_step else wide.memory
        return BoundError(f"{_too_much_memory(memory)}, or crashes its reader", path=path)
    return WorkError(f"the work was ended from outside, by {signal.Signals(number).name}", path=path)


def _too_much_memory(limit: int | None) -> str:
    return f"takes more than {(limit or 0) // _MIB} MiB of memory"
