"""Many pieces of work in a few bound child processes: each piece has its own bounds, and none can end the others.

A child does one piece after another, and so keeps what it has read. Its processor time counts from zero for each piece;
a child that exceeds a bound is replaced.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NoReturn, TypeVar

from feedstock_tools.bounds.limits import LENGTH, READING, Bounds, Note, factor, reason_of, received, renew
from feedstock_tools.bounds.supervision import fork_bound, threads
from feedstock_tools.errors import FeedstockError, WorkError

Piece = TypeVar("Piece")
Result = TypeVar("Result")
#: A child is replaced after this many pieces, so that its caches and what libraries never free cannot add up.
_PIECES = 32
#: A child collects garbage after this many pieces.
_COLLECTED = 8
_PATIENCE = 10.0
#: The interval between checks of children that may wait for something, in seconds.
_LOOK_EVERY = 5.0


@dataclass(slots=True)
class _Child(Generic[Piece]):
    """A child process, the pipe that ends it with this one, the others, and the piece that it is working on."""

    process: int
    alive: int
    orders: int
    answers: int
    note: Note
    piece: Piece
    done: int = 0
    since: float = 0.0
    is_late: bool = False
    received: bytearray = field(default_factory=bytearray)


def each_bounded(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], jobs: int, bounds: Bounds = READING
) -> Iterator[tuple[Piece, Result | FeedstockError]]:
    """Do some work for each piece, in up to `jobs` children, and give the results as they come.

    Where a process cannot fork, or runs threads, the work is done in this one, without bounds of the system.

    Args:
        work: pieces and results travel between processes, and so must be picklable; `work` itself is inherited.
        pieces: taken as children become free.
        bounds: for each piece: its processor time and files, and the memory of a child.

    Returns:
        Each piece with its result, or with the error that ended it.
    """
    if not hasattr(os, "fork") or threads() > 1:
        for piece in pieces:
            yield piece, _attempt(work, piece)
        return
    waiting = iter(pieces)
    pool = _Pool(work, bounds)
    try:
        while True:
            for piece in islice(waiting, jobs - pool.busy):
                pool.begin(piece)
            if not pool.busy:
                return
            yield from pool.finished()
    finally:
        pool.close()


class _Pool(Generic[Piece, Result]):
    def __init__(self, work: Callable[[Piece], Result], bounds: Bounds) -> None:
        self._work = work
        self._bounds = bounds
        self._working: dict[int, _Child[Piece]] = {}
        self._idle: list[_Child[Piece]] = []
        self._selector = selectors.DefaultSelector()

    @property
    def busy(self) -> int:
        return len(self._working)

    def begin(self, piece: Piece) -> None:
        """Let a child work on a piece: one that waits, or a new one."""
        child = self._idle.pop() if self._idle else _started(self._work, piece, self._bounds, self._working.values())
        child.piece, child.since = piece, time.monotonic()
        _send(child.orders, pickle.dumps(piece))
        self._working[child.answers] = child
        self._selector.register(child.answers, selectors.EVENT_READ)

    def finished(self) -> Iterator[tuple[Piece, Result | FeedstockError]]:
        """Wait until children write, and give the results that are complete."""
        _end_late(self._working.values(), self._bounds)
        for key, _ in self._selector.select(_LOOK_EVERY):
            child = self._working[key.fd]
            outcome = _received(child, self._bounds)
            if outcome is None:
                continue
            result, lives = outcome
            self._selector.unregister(child.answers)
            del self._working[child.answers]
            child.done += 1
            if lives and child.done < _PIECES:
                self._idle.append(child)
            elif lives:
                _end([child])
            yield child.piece, result  # type: ignore[misc]

    def close(self) -> None:
        _end([*self._working.values(), *self._idle])
        self._selector.close()


def _attempt(work: Callable[[Piece], Result], piece: Piece) -> Result | FeedstockError:
    try:
        return work(piece)
    except FeedstockError as error:
        return error
    except MemoryError:
        raise
    except Exception as error:  # a fault of ours in one piece must not stop the others
        return WorkError(f"{type(error).__name__}: {error}")


def _started(
    work: Callable[[Piece], Result], piece: Piece, bounds: Bounds, siblings: Iterable[_Child[Piece]]
) -> _Child[Piece]:
    note = Note()
    orders, to_child = os.pipe()
    answers, from_child = os.pipe()
    process, alive = fork_bound(bounds, note)
    if process == 0:
        for pipe in (to_child, answers, *(pipe for each in siblings for pipe in (each.orders, each.answers))):
            os.close(pipe)
        _serve(work, orders, from_child)
    os.close(orders)
    os.close(from_child)
    os.set_blocking(answers, False)
    return _Child(process, alive, to_child, answers, note, piece)


def _serve(work: Callable[[Piece], Result], orders: int, answers: int) -> NoReturn:
    """Work until the parent closes its pipe."""
    import gc

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    gc.freeze()  # a garbage collection over the parent's objects would copy all of its memory
    gc.disable()  # collecting within a piece, over all that the caches hold, takes a fifth of its time
    done = 0
    try:
        while True:
            content = received(orders)
            renew()
            _send(answers, pickle.dumps(_attempt(work, pickle.loads(content))))  # noqa: S301 - from our own parent
            done += 1
            if done % _COLLECTED == 0:
                gc.collect()
    except EOFError:
        os._exit(0)
    except MemoryError:
        os.abort()
    except BaseException:
        os._exit(1)


def _end_late(children: Iterable[_Child[Piece]], bounds: Bounds) -> None:
    """End children that wait for something instead of working; their pipes then close."""
    longest = bounds.times(factor()).longest
    for child in children:
        if longest is not None and time.monotonic() - child.since > longest and not child.is_late:
            child.is_late = True
            os.kill(child.process, signal.SIGKILL)


def _send(pipe: int, content: bytes) -> None:
    left = memoryview(LENGTH.pack(len(content)) + content)
    with suppress(BrokenPipeError):  # the other side has ended; its status says why
        while left:
            left = left[os.write(pipe, left) :]


def _received(child: _Child[Piece], bounds: Bounds) -> tuple[object, bool] | None:
    """The result of a child, and whether it goes on; None if more of the result is to come."""
    try:
        part = os.read(child.answers, 1 << 16)
    except BlockingIOError:
        return None
    if not part:
        status = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        _close(child.orders, child.answers, child.alive)
        if child.is_late:
            return WorkError("the work has not ended in time: it waits for something", path=child.note.read()[0]), False
        if status >= 0:
            return WorkError("the work ended without a result", path=child.note.read()[0]), False
        return reason_of(-status, child.note, bounds), False
    child.received += part
    if len(child.received) < LENGTH.size or len(child.received) < LENGTH.size + LENGTH.unpack_from(child.received)[0]:
        return None
    result = pickle.loads(child.received[LENGTH.size :])  # noqa: S301 - from our own child
    child.received.clear()
    return result, True


def _end(children: Sequence[_Child[Piece]]) -> None:
    """Let children end their pieces, so that no file stays half written; after some seconds, end them."""
    for child in children:
        _close(child.orders, child.answers)
    end = time.monotonic() + _PATIENCE
    for child in children:
        with suppress(OSError):  # it has ended already
            while os.waitpid(child.process, os.WNOHANG)[0] == 0:
                if time.monotonic() > end:
                    os.kill(child.process, signal.SIGKILL)
                time.sleep(0.002)
        _close(child.alive)


def _close(*pipes: int) -> None:
    for pipe in pipes:
        with suppress(OSError):
            os.close(pipe)
