"""Locks between threads and between runs, on names and on folders; each ends with the process that holds it.

And waiting in general: with a limit, and whatever takes longer than some seconds is named. A message about a wait goes
to the function of `tell_with`, by default nowhere: the command line prints it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from feedstock_tools.errors import WorkError
from feedstock_tools.wording import duration

#: How long a wait may take before it is named, in seconds.
SAID_AFTER = 10.0
T = TypeVar("T")
_PAUSE = 0.1
#: The default limit of a wait for a folder's lock in seconds: above the time of indexing a large channel.
_LONGEST = 3600.0
_BUSY = "End that process if it hangs, and run the command again."
#: The system's reasons for a lock that somebody else holds; any other, such as a network's file system without locks,
#: would be the same forever.
_HELD = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK})


class Locks:
    """Locks that are held together. Release each when it is no longer needed, or close them all."""

    def __init__(self) -> None:
        self._held: dict[str, IO[bytes]] = {}

    @classmethod
    def take(cls, folder: Path, names: Iterable[str]) -> Locks | None:
        """Take the locks of all names at once; None (and no lock is held) if another process or thread holds one of
        them.

        Args:
            folder: the folder of lock files; created if missing.
        """
        from hashlib import sha256  # commands that take no lock start without it

        locks = cls()
        paths = {name: folder / sha256(name.encode()).hexdigest()[:16] for name in sorted(set(names))}
        return locks if all(locks._add(name, path) for name, path in paths.items()) else None

    @classmethod
    def take_all(cls, folder: Path) -> Locks | None:
        """Take every lock that was ever taken in a folder: None if one is held, so that somebody works there now."""
        locks = cls()
        paths = sorted(folder.iterdir()) if folder.is_dir() else ()
        return locks if all(locks._add(path.name, path) for path in paths) else None

    def _add(self, name: str, path: Path) -> bool:
        """Whether a further lock was taken; otherwise all of them are released."""
        try:
            stream = _opened(path)
            if _lock(stream) and _is_in_place(stream):
                self._held[name] = stream
                return True
            stream.close()
        except WorkError:
            self.close()
            raise
        self.close()
        return False

    @classmethod
    def wait_for(cls, folder: Path, names: Iterable[str], seconds: float = _LONGEST) -> Locks:
        """Like `take`, but wait until they are free.

        Raises:
            WorkError: another process still holds one of them after `seconds`.
        """
        listed = list(names)
        wait = Wait(f"another run that works in {folder.parent}", seconds)
        while (locks := cls.take(folder, listed)) is None:
            if wait.is_over():
                raise WorkError(f"another run has been at work for {seconds:g} s", path=folder.parent, hint=_BUSY)
            time.sleep(_PAUSE)
        return locks

    def release(self, name: str) -> None:
        """Release one, if it is held."""
        stream = self._held.pop(name, None)
        if stream is not None:
            stream.close()

    def close(self) -> None:
        for name in list(self._held):
            self.release(name)

    def __enter__(self) -> Locks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def locked(folder: Path, seconds: float = _LONGEST) -> Iterator[None]:
    """Hold the lock of a folder (created if missing), after waiting for other processes that hold it.

    Raises:
        WorkError: the folder cannot be written, its file system has no locks, or another process still holds the lock
            after `seconds`.
    """
    wait, pause = Wait(f"another process that writes to {folder}", seconds), _PAUSE / 16
    stream = _opened(folder / ".lock")
    try:
        while not (_lock(stream) and _is_in_place(stream)):
            if wait.is_over():
                raise WorkError(f"another process has held its lock for {seconds:g} s", path=folder, hint=_BUSY)
            time.sleep(pause)
            pause = min(_PAUSE, pause * 2)
            if not _is_in_place(stream):  # somebody removed the folder and made it again
                stream.close()
                stream = _opened(folder / ".lock")
        yield
    finally:
        stream.close()


@contextmanager
def locked_in_place(folder: Path, seconds: float = 60) -> Iterator[None]:
    """Hold the lock of an existing folder without leaving a file in it.

    The lock is on the folder itself. Windows and some network file systems cannot do that: there nothing is locked.

    Raises:
        WorkError: somebody else still holds it after `seconds`.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise WorkError(f"cannot be opened: {error.strerror or error}", path=folder) from error
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                    break  # a file system that cannot lock folders
            if time.monotonic() > end:
                raise WorkError(f"another program has been writing here for {seconds:g} s", path=folder)
            time.sleep(_PAUSE / 10)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b", opener=_not_through_a_link)
    except OSError as error:
        raise WorkError(f"cannot write here: {error.strerror or error}", path=path) from error


def _not_through_a_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _is_in_place(stream: IO[bytes]) -> bool:
    """Whether an open file is the one that has its name now; one that was removed keeps nobody away."""
    try:
        return sys.platform == "win32" or os.path.samestat(os.fstat(stream.fileno()), os.lstat(stream.name))
    except FileNotFoundError:
        return False


def _lock(stream: IO[bytes]) -> bool:
    """Whether the lock of an open file was taken; closing the file releases it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        stream.close()
        hint = "Give a folder on another file system, such as one of this machine's own disks."
        text = f"cannot lock this file: {error.strerror or error}"
        raise WorkError(text, path=Path(stream.name), hint=hint) from error
    return True


_tell: Callable[[str], None] | None = None


def tell_with(tell: Callable[[str], None]) -> None:
    """Pass messages about long waits of this process to a function."""
    global _tell
    _tell = tell


def say_wait(event: str, seconds: float | None) -> None:
    """Report what this process waits for, and for how long at most."""
    limit = "" if seconds is None else f", for up to {f'{seconds:g} s' if seconds < 120 else duration(seconds)}"
    say_aside(f"waiting for {event}{limit}")


def say_aside(text: str) -> None:
    """Report something that the result does not say, where waits are reported."""
    if _tell is not None:
        _tell(text)


class Wait:
    """A wait in steps: ask `is_over` after each; it reports the wait once that takes long.

    Args:
        what: such as `another run in /packages`.
        seconds: the limit; None for a wait that its user ends.
    """

    def __init__(self, event: str, seconds: float | None) -> None:
        self._what = event
        self._seconds = seconds
        self._began = time.monotonic()
        self._said = False

    def is_over(self) -> bool:
        waited = time.monotonic() - self._began
        if waited > SAID_AFTER and not self._said:
            self._said = True
            say_wait(self._what, self._seconds)
        return self._seconds is not None and waited > self._seconds


@contextmanager
def named_wait(event: str, seconds: float | None) -> Iterator[None]:
    """A block that waits for something: it is named once that takes long.

    Args:
        event: such as `git commit to end`.
        seconds: the limit that the block itself keeps; None for a wait that its user ends.
    """
    import threading

    timer = threading.Timer(SAID_AFTER, say_wait, (event, seconds))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def within(seconds: float, event: str, work: Callable[[], T]) -> T:
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
        say_wait(event, seconds)
        thread.join(seconds - SAID_AFTER)
    if not done:
        raise TimeoutError
    result, error = done[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
