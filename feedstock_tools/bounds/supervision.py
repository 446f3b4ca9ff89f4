"""Work under bounds that the operating system enforces, also where no counting guard notices an excess.

A process that exceeds such a bound ends without a message, so the work runs in a child, forked before any engine is
loaded or thread started, and its parent reports what happened. A program that runs threads cannot fork safely: its
work goes to a process apart (`bounds.apart`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar

from feedstock_tools.bounds import limits
from feedstock_tools.errors import FeedstockError, WorkError

T = TypeVar("T")
#: The time limit of a command whose child only waits, such as for its user, in seconds: that of a build.
_LONGEST_COMMAND = 48 * 3600.0
#: Seconds between two beats of the process that waits.
_BEAT = 0.5


def hold(bounds: limits.Bounds, beat: Callable[[], None] = lambda: None) -> None:
    """Continue in a child under bounds; this process waits for it, reports what ended it, and exits with its status.

    Returns only in the child. Call it before any thread is started. Without `fork` it does nothing.

    Args:
        beat: called twice a second in this process while it waits.
    """
    if not hasattr(os, "fork"):
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller that ignores it would have the status vanish
    watched = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    note = limits.Note()
    child, _ = fork_bound(bounds, note)
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    signal.setitimer(signal.ITIMER_REAL, _BEAT, _BEAT)
    status, forwarded = _watch(child, watched, beat)
    if status < 0:  # an engine that is interrupted may crash while the child ends
        _leave(forwarded or -status, limits.reason_of(-status, note, bounds))
    os._exit(status)


def run_bounded(work: Callable[[], T], bounds: limits.Bounds | None = limits.READING) -> T:
    """Do `work` in a child under bounds, and return its result.

    This costs a fork. Where threads run, a child that is forked may wait forever for a lock: there the work is done by
    a fork of a process apart, which the first such call starts. The work stays in this process if there is no `fork`,
    or if this process is already bound.

    Args:
        work: a `partial` of a function of a module, with arguments that can be pickled, as its result can.

    Raises:
        BoundError: the work exceeded a bound.
        FeedstockError: any error of the work.
    """
    if bounds is None or limits.is_held() or not hasattr(os, "fork"):
        return work()
    if threads() > 1:
        from feedstock_tools.bounds.apart import run_apart

        return run_apart(work, bounds)
    note = limits.Note()
    read_end, write_end = os.pipe()
    child, alive = fork_bound(bounds, note)
    if child == 0:
        os.close(read_end)
        _give(work, write_end)
    os.close(write_end)
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            content = limits.whole(pipe, bounds)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(alive)
    result: T = limits.value_of(content, status, note, bounds)
    return result


def fork_bound(bounds: limits.Bounds, note: limits.Note) -> tuple[int, int]:
    """Fork a bound child that ends when this process does.

    Returns:
        Its number, and a pipe to close once it has ended, which ends it before; 0 and -1 in the child.
    """
    import fcntl  # noqa: F401 - what children need, so that not each of them loads it
    import gc  # noqa: F401
    import resource  # noqa: F401

    for stream in (sys.stdout, sys.stderr):  # otherwise the child would write buffered output again
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        limits.end_with_parent(read_end)
        limits.enter(bounds, note)
        return 0, -1
    os.close(read_end)
    return child, write_end


def threads() -> int:
    """The number of threads of this process, including those of engines if the system reports them."""
    import threading

    try:
        return max(len(os.listdir("/proc/self/task")), threading.active_count())  # noqa: PTH208
    except OSError:
        return threading.active_count()


def _watch(child: int, watched: set[signal.Signals], beat: Callable[[], None]) -> tuple[int, int]:
    """Wait for the child and forward termination signals to it; return its exit status, negative for a signal, and the
    last of these signals, 0 for none.

    Signals from the terminal reach the child by themselves.
    """
    forwarded = 0
    end = time.monotonic() + _LONGEST_COMMAND
    while True:
        if hasattr(signal, "sigwaitinfo"):
            info = signal.sigwaitinfo(watched)
            number, from_process = info.si_signo, info.si_code <= 0
        else:
            number = signal.sigwait(watched)
            from_process = number != signal.SIGINT
        if number == signal.SIGCHLD:
            ended, state = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(state), forwarded
        elif number == signal.SIGALRM and time.monotonic() < end:
            with contextlib.suppress(OSError):  # stderr may be closed
                beat()
        elif number == signal.SIGALRM:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            hours = _LONGEST_COMMAND / 3600
            _leave(signal.SIGALRM, WorkError(f"the command has not ended within {hours:g} h: it waits for something"))
        else:
            forwarded = number
            if from_process:
                os.kill(child, number)


def _leave(number: int, reason: FeedstockError) -> NoReturn:
    """Exit by the same signal that ended the child."""
    if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        os._exit(128 + number)
    sys.stderr.write(f"error: {reason}\n")
    sys.stderr.flush()
    os._exit(reason.exit_code)


def _give(work: Callable[[], object], pipe: int) -> NoReturn:
    import gc

    gc.freeze()  # a garbage collection over the parent's objects would copy all of its memory
    status = 1
    try:
        with os.fdopen(pipe, "wb") as stream:
            stream.write(limits.answer(work))
        status = 0
    finally:
        os._exit(status)
