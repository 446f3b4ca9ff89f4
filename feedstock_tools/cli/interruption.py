"""Ctrl-C, from the start of a command to its end: one message, and the status 130.

While a command is imported there is nothing to clean up, so the process ends at once. While it works, Ctrl-C unwinds
the stack, so that builds are ended and recorded. Once that is done, or the command has its result, another Ctrl-C
changes nothing.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # typing takes longer to import than the rest, and Ctrl-C is not handled until then
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType
    from typing import NoReturn

STATUS = 130
MESSAGE = "Interrupted."

#: Whether a further Ctrl-C changes nothing. Assigned and not set through a function: between an exception and the first
#: call that follows it no signal is handled.
over = False


def end_at_once() -> None:
    """Let Ctrl-C end this process at once, unless its parent made it ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def release() -> None:
    """Let a Ctrl-C through that `build-locally.py` held back, from its start until this process could handle it."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def unwind() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, in a process that `end_at_once` was called in."""
    if signal.getsignal(signal.SIGINT) is _end:
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGINT, _raise)


def ignore() -> None:
    """Ignore Ctrl-C while Python shuts down: it restores the system's handler, which would end it by the signal."""
    if signal.getsignal(signal.SIGINT) is _raise:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(number: int = 0, frame: FrameType | None = None) -> NoReturn:
    os.write(2, f"{MESSAGE}\n".encode())
    os._exit(STATUS)


def _raise(number: int, frame: FrameType | None) -> None:
    if not over:
        raise KeyboardInterrupt


def _unraisable(unraisable: UnraisableHookArgs) -> None:
    """End on a KeyboardInterrupt in a finalizer or an interpreter's callback, which would otherwise be lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end()
    if over and unraisable.exc_type is OSError and "race condition" in str(unraisable.exc_value):
        return  # Ctrl-C at the very moment in which it begins to be ignored
    sys.__unraisablehook__(unraisable)
