"""Limits on work with untrusted input, how a user widens them for a run, a process that is held to them,
and the result that it gives its parent.

Counting guards (steps of a template, sizes of values) ask `most` for their limits; the operating system enforces
memory, processor time and files. Linux enforces all of these, macOS all but memory, Windows none: only the counting
guards protect there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

from feedstock_tools.errors import FeedstockError, InputError, WorkError

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
#: A child of a busy machine takes this many times its processor time, and at least these seconds.
_SLOWER, _SHORTEST_WAIT = 10, 60.0
#: The hint for users whose input exceeds a bound.
LIFTING = "If you trust it, set FEEDSTOCK_TOOLS_BOUNDS=10 for bounds ten times as wide, or off for none, in one run."
#: The variable for it.
VARIABLE = "FEEDSTOCK_TOOLS_BOUNDS"
#: Bytes for each core in addition to a step's memory: stacks of threads that an engine may start.
_A_CORE = 10 * _MIB
#: The maximum age of the memory figure that a step starts from, in seconds of processor time.
_LOOK_EVERY = 0.01
#: The signals that end an engine that runs out of memory or meets one of its own faults.
_BREAKING = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE})

#: The limits of this process, soft and hard, by number.
Limits: TypeAlias = "dict[int, tuple[int, int]]"


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


def answer(work: Callable[[], object], modules: Callable[[], list[str]] = list) -> bytes:
    """Do the work in a child; its result or error, and the modules that it took, pickled.

    A process without memory ends here.
    """
    import pickle

    try:
        outcome: tuple[bool, object] = (True, work())
    except MemoryError:
        os.abort()
    except Exception as error:
        outcome = (False, error)
    return pickle.dumps((*outcome, modules()), pickle.HIGHEST_PROTOCOL)


def whole(pipe: FileIO, bounds: Bounds) -> bytes:
    """All that comes through a pipe, within the time that bounds leave a child.

    Raises:
        WorkError: it takes longer, so the child waits for something.
    """
    import select

    longest = bounds.times(factor()).longest
    end = None if longest is None else time.monotonic() + longest
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    parts: list[bytes] = []
    while True:
        left = None if end is None else max(0.0, end - time.monotonic()) * 1000
        if not ready.poll(left):
            raise WorkError(f"the work has not ended within {longest:g} s: it waits for something")
        part = pipe.read(1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def value_of(content: bytes, status: int, note: Note, bounds: Bounds, used: set[str] | None = None) -> Any:
    """The result in the answer of a child that ended with a status, negative for a signal.

    Args:
        used: gets the modules that the work took, whether it succeeded or not.

    Raises:
        FeedstockError: the child was ended, or the work raised this error.
        Exception: any other error of the work.
    """
    if status < 0:
        raise reason_of(-status, note, bounds)
    if status > 0 or not content:
        raise WorkError("the work ended without a result", path=note.read()[0])
    import pickle

    succeeded, value, modules = pickle.loads(content)  # noqa: S301 - from our own child
    if used is not None:
        used.update(modules)
    if succeeded:
        return value
    raise value


#: The length of a message, which precedes it in a pipe.
LENGTH = struct.Struct("<Q")


def received(pipe: int) -> bytes:
    """A whole message from a pipe.

    Raises:
        EOFError: the other side has closed it.
    """
    return _exactly(pipe, LENGTH.unpack(_exactly(pipe, LENGTH.size))[0])


def _exactly(pipe: int, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = os.read(pipe, min(size - len(content), 1 << 20))
        if not part:
            raise EOFError
        content += part
    return bytes(content)
