"""The form of ledgers: their tables and indexes, and the number of the form in `PRAGMA user_version`."""

from __future__ import annotations

import sqlite3

#: The number of the form. It grows with each change of the statements below; ledgers of another form are refused.
FORM = 4
_STATEMENTS = """
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
    marks TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 1,
    machine TEXT NOT NULL DEFAULT '',
    process TEXT NOT NULL DEFAULT '',
    cores INTEGER,
    memory_limit INTEGER,
    peak_memory INTEGER,
    commit_id TEXT NOT NULL DEFAULT '',
    inputs TEXT NOT NULL DEFAULT '{}',
    "values" TEXT NOT NULL DEFAULT '{}',
    command TEXT NOT NULL DEFAULT '',
    seen TEXT NOT NULL DEFAULT ''
);
CREATE INDEX builds_by_identity ON builds (identity, result);
CREATE INDEX builds_by_place ON builds (row, output, result);
CREATE INDEX builds_by_output ON builds (output, result);
CREATE INDEX builds_running ON builds (result) WHERE result = 'running';
CREATE TABLE packages (
    build INTEGER NOT NULL REFERENCES builds (id),
    channel TEXT NOT NULL,
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (build, file)
);
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
CREATE INDEX tests_by_package ON tests (sha256);
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
CREATE INDEX comparisons_by_package ON comparisons (sha256)"""


def form_of(database: sqlite3.Connection) -> int:
    """The number of the form of a ledger; 0 for an empty database."""
    form: int = database.execute("PRAGMA user_version").fetchone()[0]
    return form


def create(database: sqlite3.Connection) -> None:
    """Create the tables and indexes of an empty database, all or nothing, unless another process has done so."""
    database.execute("BEGIN IMMEDIATE")
    try:
        if form_of(database) == 0:
            for statement in _STATEMENTS.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {FORM}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # a full disk has ended it
            database.execute("ROLLBACK")
        raise


def why_no_ledger(database: sqlite3.Connection) -> str | None:
    """Why a database cannot be a ledger: it has code that SQLite would run, or computes values; else None.

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
