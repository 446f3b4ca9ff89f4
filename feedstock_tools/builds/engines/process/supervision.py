"""A process that ends with all its descendants, and that ends when its parent does.

Three means, since none covers all: a session of its own, ended with `killpg`; on Linux, the role of reaper for orphaned
descendants (so that a script that left the session is found too) and the kernel's signal on the parent's death; and a
pipe whose other end only the parent holds, which closes however the parent dies.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: The signals that ask a process to end; Windows has the first two.
_ASKING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: The interval at which the supervisor checks its child while it waits for the pipe, in seconds.
_PAUSE = 0.02
#: The time limit for descendants to disappear after they were killed, in seconds.
_PATIENCE = 10.0


def supervise(work: Callable[[], int], watch: int, is_over: Callable[[], bool] = lambda: False) -> int:
    """Fork; run `work` in the child; end it, and all its descendants, once `watch` closes or a signal asks for it.

    Call it before any thread is started. The calling process must lead a session of its own.

    Args:
        work: returns the exit status.
        watch: a file descriptor, readable only after the parent has ended.
        is_over: asked many times a second whether `work` must end for another reason.

    Returns:
        The child's exit status; 128 + the signal's number if a signal ended it, or if this function ended it.
    """
    is_reaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signals: list[int] = []
    for number in _ASKING:
        # Noted and not raised: the pipe closes at the same moment, and nothing may break into what follows.
        signal.signal(number, lambda number, frame: signals.append(number))
    child = os.fork()
    if child == 0:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in _ASKING:
            signal.signal(number, signal.SIG_DFL)
        os.close(watch)
        os._exit(_guarded(work))
    status = _wait(child, watch, signals, is_over)
    _end_descendants(is_reaper=is_reaper)
    return 128 + signal.SIGTERM if status is None else status


@contextmanager
def signals_as_exit() -> Iterator[None]:
    """Let a signal that asks this process to end unwind its stack, as Ctrl-C does, so that its builds end too."""
    before = {number: signal.signal(number, _raise_exit) for number in _ASKING if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Delay Ctrl-C and other termination signals during a short step that must not be interrupted.

    A signal mask would not work: a signal can reach any thread of the process, and the solver's threads have no mask.
    Outside of the main thread, where Python handles no signals, there is nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in _ASKING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def end_group(leader: int) -> None:
    """Kill every process of the session that `leader` leads; does nothing if none is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _guarded(work: Callable[[], int]) -> int:
    try:
        return work()
    except BaseException as error:  # the child must never return into the parent's stack
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        return 1


def _wait(child: int, watch: int, signals: Sequence[int], is_over: Callable[[], bool]) -> int | None:
    """The child's exit status, or None if the parent ended first, sent a termination signal, or it is over."""
    parent_gone = False
    while not parent_gone and not signals and not is_over():
        ended, state = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(state)
            return code if code >= 0 else 128 - code
        if not ended:
            parent_gone = bool(select.select([watch], [], [], _PAUSE)[0])
    return None


def _end_descendants(*, is_reaper: bool) -> None:
    """Kill the remaining processes repeatedly until none is left: a process that is being killed may still fork.

    Args:
        is_reaper: whether orphaned descendants become children of this process: without a child it has none then.
    """
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if is_reaper and not _has_children():
            return
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(_PAUSE / 4)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> list[int]:
    """All processes below `root`; on systems without /proc, those of its group."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return _group_members(root)
    children: dict[int, list[int]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The second field is the program's name in parentheses, which may hold spaces and parentheses.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    pending = [root]
    while pending:
        below_it = children.get(pending.pop(), [])
        found += below_it
        pending += below_it
    return found


def _group_members(root: int) -> list[int]:
    import subprocess

    listed = subprocess.run(
        ["ps", "-axo", "pid=,pgid="], capture_output=True, text=True, check=False, timeout=_PATIENCE
    ).stdout
    pairs = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, group in pairs if int(group) == root and int(pid) != os.getpid()]


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _prctl(option: int, value: int) -> bool:
    """Ask Linux's kernel; whether it agrees. Elsewhere, or if it refuses, the other means must suffice."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    return False
