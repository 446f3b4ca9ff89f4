"""Temporary files that say whose they are, and what becomes of those of the dead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.cleaning import remove_leftovers_of
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.changes import replacing, write_whole
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import (
    leftovers,
    own_mark,
    owned_name,
    owner_lives,
    remove,
    remove_leftovers,
    system_folder,
    temporary_folder,
)
from tests.support import command
from tests.support.needs import needs

_LEAVE = """
import os, signal
from pathlib import Path
from feedstock_tools.files.temporary import new_folder, owned_name
here = Path(os.environ["HERE"])
(here / owned_name()).write_text("half of it")
(new_folder(here) / "inner").mkdir()
(new_folder() / "inner").write_text("of the system's folder")
os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = [
    needs("system", sys.platform != "win32", "owners are distinguished by signals"),
    pytest.mark.usefixtures("within_limits"),
]


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def dead_mark() -> str:
    """The mark of a process that has ended."""
    program = "from feedstock_tools.files.temporary import own_mark; print(own_mark())"
    return subprocess.run(
        [sys.executable, "-c", program], env=command.environment(), capture_output=True, text=True, check=True
    ).stdout.strip()


def test_what_a_killed_process_left_is_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "here").mkdir()
    left = command.environment(HERE=str(tmp_path / "here"))
    subprocess.run([sys.executable, "-c", _LEAVE], env=left, check=False)
    assert len(leftovers(tmp_path / "here")) == 2
    assert len(leftovers()) == 1
    write_whole(tmp_path / "here" / "file", "text")
    assert names(tmp_path / "here") == ["file"]
    (kept,) = leftovers()
    remove(kept)
    assert leftovers() == ()


def test_what_the_living_and_others_own_stays(tmp_path: Path) -> None:
    mine = tmp_path / owned_name()
    mine.write_text("")
    elsewhere = tmp_path / f".ffffff{own_mark()[6:]}.part"
    elsewhere.write_text("of another machine")
    for name in (".part", ".x.part", ".12-34.part", "feedstock-tools-", "feedstock-tools-mine", f"{own_mark()}.part"):
        (tmp_path / name).write_text("of somebody else")
    before = names(tmp_path)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == before
    week = time.time() - 8 * 24 * 3600
    os.utime(elsewhere, (week, week))
    assert leftovers(tmp_path) == (elsewhere,)
    assert owner_lives(own_mark()) is True
    assert owner_lives(dead_mark()) is False
    assert owner_lives(elsewhere.name[1:-5]) is None
    assert owner_lives("nothing of ours") is None


def test_a_link_with_the_name_of_a_leftover_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("")
    (tmp_path / "place").mkdir()
    link = tmp_path / "place" / f".{dead_mark()}.part"
    link.symlink_to(tmp_path / "kept")
    remove_leftovers(tmp_path / "place")
    assert (tmp_path / "kept" / "file").exists()


def test_a_folder_is_removed_although_parts_of_it_are_read_only(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "sealed").mkdir()
        (folder / "sealed" / "file").write_text("")
        (folder / "sealed").chmod(0o500)
    assert names(tmp_path) == []


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot write"), replacing(tmp_path / "file") as part:
        part.write_text("half")
        raise OSError(28, "No space left on device")
    with pytest.raises(RuntimeError), temporary_folder(tmp_path) as folder:
        raise RuntimeError(folder)
    assert names(tmp_path) == []


def test_what_a_killed_indexer_left_is_removed_unless_somebody_indexes(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "repodata.json.part").write_text("")
    machine = {"HOME": str(tmp_path / "home")}
    with locked(tmp_path):
        remove_leftovers_of(None, Artifacts(tmp_path), machine)
        assert (tmp_path / ".tmp").is_dir()
    remove_leftovers_of(None, Artifacts(tmp_path), machine)
    assert not (tmp_path / ".tmp").exists()


def test_the_folder_for_temporary_files_is_found_without_writing_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    os.utime(tmp_path, (1, 1))
    assert system_folder() == tmp_path
    assert tmp_path.stat().st_mtime == 1
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    assert system_folder().is_dir()
