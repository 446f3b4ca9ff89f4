"""Limits of time and memory for work that hostile input tries to prolong or to blow up."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest import mock

from feedstock_tools.errors import FeedstockError
from tests.support import command

#: Processor time in seconds that one attack may take; more where coverage is measured.
SECONDS = 5.0 * (3 if os.environ.get("COVERAGE_RUN") else 1)
#: Bytes by which one attack may make this process grow.
MEMORY = 300 * 1024 * 1024
#: The most bytes of memory that one process of a command may take.
OF_A_COMMAND = 600 * 1024 * 1024
#: How long an attack may wait for something, in seconds, on a busy machine.
_WAITING = 180


class _HangsError(BaseException):
    """Work waits for something; no reader can catch this by mistake."""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise _HangsError


@contextmanager
def limited(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Fail if the work inside hangs, takes longer than `seconds` of processor time, or grows by more than `memory`."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.setitimer(signal.ITIMER_REAL, _WAITING)
    peak, began = _peak(), time.process_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - began < seconds
    assert _peak() - peak < memory


@contextmanager
def commands_limited(seconds: float = SECONDS, memory: int = OF_A_COMMAND) -> Iterator[None]:
    """Fail if a command of feedstock-tools that runs inside, with all that it starts, takes more than this.

    Args:
        seconds: processor time.
        memory: of its largest process, in bytes.
    """

    def checked(arguments: list[str], *others: Any, **options: Any) -> command.Measured:
        ended = command.measured(arguments, *others, **options)
        assert ended.seconds < seconds, f"{arguments} took {ended.seconds:.1f} s of processor time"
        assert ended.memory < memory, f"{arguments} took {ended.memory >> 20} MiB of memory"
        return ended

    with mock.patch.object(command, "run", checked):
        yield


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def refusal_of(work: Callable[[], object], seconds: float = SECONDS, memory: int = MEMORY) -> str:
    """The message of the error of ours that some work ends with; empty if it succeeds. Within limits."""
    with limited(seconds, memory):
        try:
            work()
        except FeedstockError as error:
            return str(error)
    return ""
