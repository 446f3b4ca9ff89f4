"""Locks of rows and outputs, between threads and between runs; each goes with the process that holds it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import IO

from feedstock_tools.errors import WorkError

__all__ = ["Locks"]

_PAUSE = 0.1


class Locks:
    """Some locks that are held together. Release each when it is not needed any more, or close them all."""

    def __init__(self, held: dict[str, IO[bytes]]) -> None:
        self._held = held

    @classmethod
    def take(cls, folder: Path, names: Iterable[str]) -> Locks | None:
        """Take the locks of all names at once; None, and none is held, where another holds one of them.

        Args:
            folder: where the files of locks lie; it is made where it is missing.

        Raises:
            WorkError: a lock's file cannot be made.
        """
        locks = cls({})
        for name in sorted(set(names)):
            path = folder / sha256(name.encode()).hexdigest()[:16]
            try:
                folder.mkdir(parents=True, exist_ok=True)
                stream = path.open("a+b")
            except OSError as error:
                locks.close()
                raise WorkError(f"cannot write here: {error.strerror or error}", path=path) from error
            if not _locked(stream):
                stream.close()
                locks.close()
                return None
            locks._held[name] = stream
        return locks

    @classmethod
    def wait_for(cls, folder: Path, names: Iterable[str]) -> Locks:
        """As `take`, once they are free."""
        listed = list(names)
        while (locks := cls.take(folder, listed)) is None:
            time.sleep(_PAUSE)
        return locks

    def release(self, name: str) -> None:
        """Let go of one, if it is held."""
        stream = self._held.pop(name, None)
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Let go of all."""
        for name in list(self._held):
            self.release(name)

    def __enter__(self) -> Locks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(stream: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
