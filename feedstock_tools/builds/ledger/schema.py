"""The forms of ledgers, and the upgrade of an earlier form: in place, all or nothing."""

from __future__ import annotations

import sqlite3

#: Form → the statements that create it from the previous form. A higher form was written by a newer program.
_STEPS = {
    1: """
CREATE TABLE builds (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL,
    configuration TEXT NOT NULL,
    row TEXT NOT NULL,
    output TEXT NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('running', 'done', 'failed', 'interrupted')),
    reason TEXT NOT NULL DEFAULT '',
    started TEXT NOT NULL,
    ended TEXT,
    seconds REAL,
    log TEXT NOT NULL,
    engine TEXT NOT NULL,
    channels TEXT NOT NULL,
    marks TEXT NOT NULL
);
CREATE INDEX builds_by_identity ON builds (identity, result);
CREATE TABLE packages (
    build INTEGER NOT NULL REFERENCES builds (id),
    channel TEXT NOT NULL,
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (build, file)
)""",
    2: """
ALTER TABLE builds ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
ALTER TABLE builds ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE builds ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE builds ADD COLUMN cores INTEGER;
ALTER TABLE builds ADD COLUMN memory_limit INTEGER;
ALTER TABLE builds ADD COLUMN peak_memory INTEGER;
ALTER TABLE builds ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';
ALTER TABLE builds ADD COLUMN inputs TEXT NOT NULL DEFAULT '{}';
ALTER TABLE builds ADD COLUMN "values" TEXT NOT NULL DEFAULT '{}';
ALTER TABLE builds ADD COLUMN command TEXT NOT NULL DEFAULT '';
CREATE TABLE environments (
    build INTEGER NOT NULL REFERENCES builds (id),
    environment TEXT NOT NULL CHECK (environment IN ('build', 'host', 'run', 'test')),
    packages TEXT NOT NULL,
    PRIMARY KEY (build, environment)
);
CREATE TABLE tests (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    channel TEXT NOT NULL,
    file TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT,
    seconds REAL,
    result TEXT NOT NULL CHECK (result IN ('passed', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    log TEXT NOT NULL,
    machine TEXT NOT NULL,
    gpu TEXT NOT NULL DEFAULT '',
    driver TEXT NOT NULL DEFAULT '',
    benchmark TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX tests_by_package ON tests (sha256)""",
    3: """
ALTER TABLE builds ADD COLUMN seen TEXT NOT NULL DEFAULT ''""",
    4: """
CREATE TABLE comparisons (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    channel TEXT NOT NULL,
    file TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT,
    seconds REAL,
    result TEXT NOT NULL CHECK (result IN ('same', 'repacked', 'different', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    log TEXT NOT NULL,
    machine TEXT NOT NULL,
    again TEXT NOT NULL,
    files INTEGER NOT NULL,
    differences TEXT NOT NULL
);
CREATE INDEX comparisons_by_package ON comparisons (sha256)""",
}
#: The form of the ledgers that this program writes.
SCHEMA_VERSION = max(_STEPS)
#: What makes a ledger of years answer at once. They hold nothing of their own, so a ledger of any version may have them
#: or lack them, and they are no form of their own.
_INDEXES = {
    "builds_by_place": "CREATE INDEX builds_by_place ON builds (row, output, result)",
    "builds_by_output": "CREATE INDEX builds_by_output ON builds (output, result)",
    "builds_running": "CREATE INDEX builds_running ON builds (result) WHERE result = 'running'",
}


def bring_up_to_date(database: sqlite3.Connection) -> int:
    """Create tables and indexes, or upgrade those of an earlier form, in one transaction; return the resulting form.

    A newer form than the known ones is left unchanged.

    Raises:
        sqlite3.DatabaseError: the form is invalid.
    """
    form: int = database.execute("PRAGMA user_version").fetchone()[0]
    if form < 0:
        raise sqlite3.DatabaseError(f"its form is {form}")
    if form > SCHEMA_VERSION:
        return form
    if form == SCHEMA_VERSION:
        _add_indexes(database)
        return form
    database.execute("BEGIN IMMEDIATE")
    try:
        form = database.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
        for step in range(form + 1, SCHEMA_VERSION + 1):
            for statement in _STEPS[step].split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {step}")
        for name in _missing(database):
            database.execute(_INDEXES[name])
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # a full disk has ended it
            database.execute("ROLLBACK")
        raise
    return max(form, SCHEMA_VERSION)


def strange(database: sqlite3.Connection) -> str | None:
    """What no ledger of ours has: code that SQLite would run, tables and indexes that compute; None if nothing.

    Such a ledger is damaged, or was written to take time and memory from its readers.
    """
    database.execute("PRAGMA trusted_schema = OFF")
    for kind, name, statement in database.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind not in ("table", "index"):
            return f"'{name}' is neither a table nor an index"
        if kind == "table" and not str(statement).upper().startswith("CREATE TABLE"):
            return f"the table '{name}' is a virtual one"
        question = "pragma_table_xinfo" if kind == "table" else "pragma_index_xinfo"
        computed = "hidden <> 0" if kind == "table" else "cid = -2"
        if database.execute(f"SELECT 1 FROM {question}(?) WHERE {computed}", (name,)).fetchone():  # noqa: S608
            return f"'{name}' computes values"
    return None


def _add_indexes(database: sqlite3.Connection) -> None:
    """Add missing indexes to a ledger, if it can be written now: without them it answers more slowly."""
    missing = _missing(database)
    if not missing:
        return
    (patience,) = database.execute("PRAGMA busy_timeout").fetchone()
    database.execute("PRAGMA busy_timeout = 100")
    try:
        for name in missing:
            database.execute(_INDEXES[name].replace("INDEX", "INDEX IF NOT EXISTS", 1))
    except sqlite3.OperationalError:
        return
    finally:
        database.execute(f"PRAGMA busy_timeout = {int(patience)}")


def _missing(database: sqlite3.Connection) -> list[str]:
    found = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    return [name for name in _INDEXES if name not in found]
