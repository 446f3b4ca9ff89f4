"""The ledger: what counts as done, and what happens to a ledger that cannot be used."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.build import ledger as module
from feedstock_tools.build.contents import sha256_of
from feedstock_tools.build.ledger import SCHEMA_VERSION, BuildRecord, Ledger, PackageRecord, now
from feedstock_tools.errors import WorkError

BEGUN = BuildRecord(
    identity="i1",
    configuration="linux_64_",
    row="linux_64__py3.12",
    output="tiny",
    result="running",
    started="2026-01-01T00:00:00.000+00:00",
    log="logs/tiny.log",
    engine="rattler-build 0.73.0",
    channels=("conda-forge",),
    marks={"channel": "stand-in"},
)


def package(folder: Path, content: bytes = b"package") -> PackageRecord:
    """A file in the channel, and its record."""
    path = folder / "linux-64" / "tiny-1-0.conda"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    state = path.stat()
    return PackageRecord(".", "linux-64/tiny-1-0.conda", state.st_size, sha256_of(path), state.st_mtime_ns)


def finished(ledger: Ledger, record: PackageRecord) -> BuildRecord:
    """A build that was begun and is done."""
    done = replace(ledger.begin(BEGUN), result="done", ended=now(), seconds=1.5, packages=(record,))
    ledger.finish(done)
    return done


def test_a_finished_build_is_found_by_its_identity_as_it_was_recorded(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        done = finished(ledger, package(tmp_path))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.done("i1") == done
        assert ledger.done("i2") is None


@pytest.mark.parametrize("result", ["running", "failed", "interrupted"])
def test_only_what_is_done_counts(tmp_path: Path, result: str) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.finish(replace(ledger.begin(BEGUN), result=result, packages=(package(tmp_path),)))
        assert ledger.done("i1") is None


def test_a_package_that_is_gone_is_not_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        (tmp_path / "linux-64" / "tiny-1-0.conda").unlink()
        assert ledger.done("i1") is None


def test_a_package_that_was_tampered_with_is_not_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        (tmp_path / "linux-64" / "tiny-1-0.conda").write_bytes(b"PACKAGE")
        os.utime(tmp_path / "linux-64" / "tiny-1-0.conda", ns=(1, 1))
        assert ledger.done("i1") is None


def test_a_package_that_was_copied_back_is_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        os.utime(tmp_path / "linux-64" / "tiny-1-0.conda", ns=(1, 1))
        assert ledger.done("i1") is not None


def test_what_a_killed_run_left_is_settled(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.begin(BEGUN)
        delivered = replace(ledger.begin(replace(BEGUN, identity="i2")), packages=(package(tmp_path),))
        ledger.promise(delivered)
        missing = replace(delivered.packages[0], file="linux-64/other-1-0.conda")
        ledger.promise(replace(ledger.begin(replace(BEGUN, identity="i3")), packages=(missing,)))
        settled = ledger.settle(BEGUN.row)
        assert [(record.identity, record.result) for record in settled] == [
            ("i1", "interrupted"),
            ("i2", "done"),
            ("i3", "interrupted"),
        ]
        assert ledger.done("i2") is not None
        assert ledger.settle(BEGUN.row) == ()


def test_a_ledger_from_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    with pytest.raises(WorkError, match="newer feedstock-tools"):
        Ledger(path)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_ledger_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(WorkError, match=r"ledger .*(damaged|cannot be used)"):
        Ledger(path).builds()
    assert path.read_bytes() == content


def test_a_locked_ledger_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.05)
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(WorkError, match="Another program holds it"), Ledger(path) as ledger:
            ledger.begin(BEGUN)
    finally:
        holder.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match="ledger cannot be used"):
        Ledger(tmp_path / "file" / "ledger.sqlite")
