"""A ledger that cannot be used: the message says what the system refuses, and what was recorded before stays."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.errors import WorkError
from tests.support import command
from tests.support.limits import limited
from tests.support.needs import needs

pytestmark = pytest.mark.usefixtures("within_limits")

RECORD = BuildRecord("i", "c", "r", "o", "running", now(), "logs/o.log", "e", ("c",))

_FILL = """
import resource, sys
from pathlib import Path
from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.errors import FeedstockError
path, limit = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with Ledger(path) as ledger:
        for number in range(5000):
            ledger.begin(BuildRecord(f"i{number}", "c", "r", "o", "running", now(), "logs/o.log", "e", ("c",)))
except FeedstockError as error:
    print(error)
    sys.exit(7)
"""


@needs("system", sys.platform != "win32", "limits on the size of files")
@pytest.mark.parametrize("limit", [0, 4096, 20_000, 200_000])
def test_a_limit_on_the_size_of_files_is_told_and_what_was_recorded_stays(limit: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    arguments = [sys.executable, "-c", _FILL, str(path), str(limit)]
    run = subprocess.run(arguments, env=command.environment(), capture_output=True, text=True, check=False)
    assert run.returncode == 7, run.stderr
    assert "the ledger cannot be used: it cannot be read or written" in run.stdout
    assert "ulimit -f" in run.stdout
    assert "rollback" not in run.stdout + run.stderr
    with Ledger(path) as ledger:
        kept = ledger.builds()
        assert [record.identity for record in kept] == [f"i{number}" for number in range(len(kept))]
        assert ledger.begin(RECORD).id == len(kept) + 1


def opened(monkeypatch: pytest.MonkeyPatch, change: Callable[[sqlite3.Connection], object]) -> None:
    """Change each connection that is opened from now on."""
    connect = sqlite3.connect

    def changed(path: Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(path, **options)
        change(connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", changed)


def test_a_full_disk_is_told_and_what_was_recorded_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    with monkeypatch.context() as full:
        opened(full, lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 3}"))
        with Ledger(path) as ledger, pytest.raises(WorkError, match="the disk is full") as told:
            with ledger.at_once():
                for _ in range(10):
                    ledger.begin(RECORD)
            for _ in range(10_000):
                ledger.begin(RECORD)
        assert "Free some space" in str(told.value)
    with Ledger(path) as ledger:
        assert len(ledger.builds()) >= 10


def test_a_full_disk_while_a_ledger_is_made_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        opened(full, lambda connection: connection.execute("PRAGMA max_page_count = 3"))
        with pytest.raises(WorkError, match="the disk is full"):
            Ledger(tmp_path / "ledger.sqlite")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.builds() == ()


@needs("system", hasattr(os, "mkfifo"), "FIFOs")
def test_a_fifo_and_a_folder_are_no_ledgers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", ""):
        with limited(), pytest.raises(WorkError, match="the ledger is not a file"):
            Ledger(tmp_path / name)


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(tmp_path / "ledger.sqlite").close()

    def fail(_connection: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_LOCK
        raise error

    opened(monkeypatch, fail)
    with pytest.raises(WorkError, match="the file system has no locks"):
        Ledger(tmp_path / "ledger.sqlite")


def test_a_clock_that_is_set_back_changes_neither_the_order_nor_what_is_left(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for started in ("2026-01-02T00:00:00+00:00", "1999-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"):
            record = BuildRecord("i", "c", "r", "o", "failed", started, "logs/o.log", "e", ("c",), reason=started)
            ledger.finish(BuildRecord(**{**_fields(record), "id": ledger.begin(record).id}))
        assert ledger.builds_of(["i"])[-1].reason == "2026-01-01T00:00:00+00:00"
        assert [record.id for record in ledger.last_builds(["c"], 2)] == [2, 3]


def _fields(record: BuildRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in BuildRecord.__slots__}
