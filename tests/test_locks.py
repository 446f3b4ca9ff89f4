"""Locks: held by one, ended with their owner, and refused where the file system has none."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import IO

import pytest

from feedstock_tools.errors import WorkError
from feedstock_tools.files import locks as module
from feedstock_tools.files.locks import Locks, locked
from tests.support.limits import limited
from tests.support.needs import needs


def test_all_names_are_taken_at_once_or_none(tmp_path: Path) -> None:
    with Locks.take(tmp_path, ["a", "b"]) as held:  # type: ignore[union-attr]
        assert Locks.take(tmp_path, ["b", "c"]) is None
        held.release("b")
        other = Locks.take(tmp_path, ["b", "c"])
        assert other is not None
        other.close()


def test_all_locks_of_a_folder_are_taken_if_nobody_holds_one(tmp_path: Path) -> None:
    assert Locks.take_all(tmp_path / "nothing") is not None
    held = Locks.take(tmp_path, ["a", "b"])
    assert held is not None
    held.release("a")
    assert Locks.take_all(tmp_path) is None
    held.close()
    with Locks.take_all(tmp_path) as taken:  # type: ignore[union-attr]
        assert Locks.take(tmp_path, ["a"]) is None
        taken.close()
    with Locks.wait_for(tmp_path, ["a"]) as taken:
        taken.release("a")


@needs("system", sys.platform != "win32", "folders that are removed while a file in them is open")
def test_a_lock_that_was_removed_keeps_nobody_away_and_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody removes the folder between the opening of its lock and the taking."""
    taken = module._lock
    removed: list[str] = []

    def lock(stream: IO[bytes]) -> bool:
        if not removed:
            removed.append(stream.name)
            Path(stream.name).unlink()
        return taken(stream)

    monkeypatch.setattr(module, "_lock", lock)
    with locked(tmp_path), pytest.raises(WorkError, match="held its lock"), locked(tmp_path, seconds=0):
        raise AssertionError
    removed.clear()
    assert Locks.take(tmp_path, ["a"]) is None


@needs("system", sys.platform != "win32", "flock")
@pytest.mark.parametrize("reason", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_told_and_nobody_waits(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def flock(*_: object) -> None:
        raise OSError(reason, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with limited(), pytest.raises(WorkError, match="cannot lock this file: No locks available"):
        Locks.wait_for(tmp_path, ["a"])
    with limited(), pytest.raises(WorkError, match="cannot lock this file"), locked(tmp_path):
        raise AssertionError
