"""The result of bounded work, on its way from a child to the process that wants it."""

from __future__ import annotations

import os
import pickle
import select
import time
from collections.abc import Callable
from io import FileIO
from typing import Any

from feedstock_tools.bounds.held import Note, reason_of
from feedstock_tools.bounds.limits import Bounds, factor
from feedstock_tools.errors import WorkError


def answer(work: Callable[[], object], modules: Callable[[], list[str]] = list) -> bytes:
    """Do the work in a child; its result or error, and the modules that it took, pickled.

    A process without memory ends here.
    """
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
    succeeded, value, modules = pickle.loads(content)  # noqa: S301 - from our own child
    if used is not None:
        used.update(modules)
    if succeeded:
        return value
    raise value
