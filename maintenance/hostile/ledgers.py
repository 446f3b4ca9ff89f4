"""Ledgers whose records, tables or bytes deceive their readers."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord

_VALUES: tuple[object, ...] = (
    *("", "a", "../../outside/x", "/etc/passwd", "noarch/bomb-1-0.conda", "built-on-stand-in/x", "\x1b[2J", "\n"),
    *("done", "running", "failed", "x" * 100_000, "{}", "[]", "{" * 5000, '{"a": ' * 900 + "1" + "}" * 900),
    *("9" * 5000, "\ud7ff", None, -1, 0, 2**62, 1e308, float("inf"), b"\0\xff" * 50, b""),
    *("2026-01-01T00:00:00+00:00", "0001-01-01", "NaN"),
)
_STATEMENTS = (
    *("CREATE TABLE strange (x)", "CREATE VIEW v AS SELECT * FROM builds", "DROP TABLE packages"),
    "CREATE TRIGGER t AFTER INSERT ON builds BEGIN DELETE FROM packages; END",
    *("PRAGMA user_version = 1", "PRAGMA user_version = 99", "PRAGMA user_version = -1"),
    *("ALTER TABLE builds RENAME TO others", "DELETE FROM builds", "ALTER TABLE tests ADD x"),
    "INSERT INTO packages SELECT build, channel, file || 'x', size, sha256, mtime_ns FROM packages",
    "INSERT INTO comparisons (sha256, channel, file, started, result, log, machine, again, files, differences) "
    "SELECT sha256, channel, file, 's', 'same', 'logs/a.log', 'm', 'a', 1, '[]' FROM packages",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO tests "
    "(sha256, channel, file, started, result, log, machine) SELECT i, 'c', 'f', 's', 'passed', 'l', 'm' FROM n",
)


def hostile_ledger(path: Path, identity: str, chance: random.Random) -> None:
    """Write a ledger of some records at `path`, then spoil it.

    Args:
        identity: of an output that the feedstock has.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with Ledger(path) as ledger:
        for number in range(chance.choice((1, 2, 9))):
            record = ledger.begin(_record(identity if number == 0 else f"other {number}"))
            ledger.finish(record)
    with contextlib.closing(sqlite3.connect(path)) as database, contextlib.suppress(sqlite3.Error):
        for _ in range(chance.randrange(5)):
            _spoil(database, chance)
        database.commit()
    if chance.random() < 0.3:
        content = bytearray(path.read_bytes())
        for _ in range(chance.choice((1, 20, 400))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(
            bytes(content[: chance.choice((len(content), len(content), chance.randrange(len(content)))) or 1])
        )


def _record(identity: str) -> BuildRecord:
    package = PackageRecord("built", "noarch/bomb-1-0.conda", 10, "0" * 64, 0)
    return BuildRecord(
        identity=identity,
        configuration="linux_64_",
        row="linux_64_",
        output="p",
        result="done",
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:01+00:00",
        seconds=1.0,
        log="logs/a.log",
        engine="e",
        channels=("conda-forge",),
        packages=(package,),
    )


def _spoil(database: sqlite3.Connection, chance: random.Random) -> None:
    if chance.random() < 0.2:
        database.execute(chance.choice(_STATEMENTS))
        return
    table = chance.choice(("builds", "builds", "packages", "tests", "environments", "comparisons"))
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    if columns:
        column = chance.choice(columns)
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(f'UPDATE {table} SET "{column}" = ?', (chance.choice(_VALUES),))  # noqa: S608
