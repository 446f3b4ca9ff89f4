"""Where the tests have their temporary folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.in_memory import folder_in_memory
from tests.support.needs import needs

pytestmark = needs("system", hasattr(os, "ST_NOEXEC"), "Linux says so of a file system")

GIB = 1 << 30


def system(free: int, flags: int) -> os.statvfs_result:
    """A file system with some free bytes."""
    return os.statvfs_result((1, 1, free, free, free, 0, 0, 0, flags, 255))


@pytest.mark.parametrize(
    ("free", "flags", "available", "taken"),
    [
        (5 * GIB, 0, 9 * GIB, True),
        (64 << 20, 0, 9 * GIB, False),  # a container of docker
        (5 * GIB, 0, 5 * GIB, False),
        (5 * GIB, os.ST_NOEXEC if hasattr(os, "ST_NOEXEC") else 0, 9 * GIB, False),
    ],
)
def test_memory_is_taken_where_it_has_room_and_runs_programs(
    free: int, flags: int, available: int, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:  {available // 1024} kB\n")
    monkeypatch.setattr(os, "statvfs", lambda _: system(free, flags))
    assert (folder_in_memory(tmp_path, tmp_path / "meminfo") == tmp_path) is taken


def test_a_system_without_such_a_place_has_its_folders_on_disk(tmp_path: Path) -> None:
    assert folder_in_memory(tmp_path / "shm", tmp_path / "meminfo") is None
    assert folder_in_memory(tmp_path, tmp_path / "meminfo") is None
