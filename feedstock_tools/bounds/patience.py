"""Waiting with a limit: whatever takes longer than some seconds is named, and nothing is waited for forever.

A message about a wait goes to the function of `tell_with`, by default nowhere: the command line prints it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["SAID_AFTER", "Wait", "say_wait", "tell_with", "within"]

#: How long a wait may take before it is named, in seconds.
SAID_AFTER = 10.0
T = TypeVar("T")


def _silent(text: str) -> None:
    """Discard a message."""


_tell: Callable[[str], None] = _silent


def tell_with(tell: Callable[[str], None]) -> None:
    """Pass messages about long waits of this process to a function."""
    global _tell
    _tell = tell


def say_wait(what: str, seconds: float | None) -> None:
    """Say what is waited for, and for how long at most."""
    limit = f", for up to {seconds:g} s" if seconds is not None else ""
    _tell(f"waiting for {what}{limit}")


class Wait:
    """A wait in steps: ask `is_over` after each; it names what is waited for once that takes long.

    Args:
        what: such as `another run in /packages`.
        seconds: the limit; None for a wait that its user ends.
    """

    def __init__(self, what: str, seconds: float | None) -> None:
        self._what = what
        self._seconds = seconds
        self._began = time.monotonic()
        self._said = False

    def is_over(self) -> bool:
        """Whether the limit is reached."""
        waited = time.monotonic() - self._began
        if waited > SAID_AFTER and not self._said:
            self._said = True
            say_wait(self._what, self._seconds)
        return self._seconds is not None and waited > self._seconds


def within(seconds: float, what: str, work: Callable[[], T]) -> T:
    """The result of some work that may wait where nothing can interrupt it, such as for a name server.

    The work goes on in a thread of its own, which is abandoned when the time is over.

    Raises:
        TimeoutError: it takes longer.
        BaseException: whatever the work raises.
    """
    import threading

    done: list[tuple[T | None, BaseException | None]] = []

    def run() -> None:
        try:
            done.append((work(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(min(SAID_AFTER, seconds))
    if thread.is_alive() and seconds > SAID_AFTER:
        say_wait(what, seconds)
        thread.join(seconds - SAID_AFTER)
    if not done:
        raise TimeoutError
    result, error = done[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
