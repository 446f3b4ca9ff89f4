"""The ledger: what was built, from what, when and how it ended; the sole truth of what is done.

An SQLite file among a feedstock's build artifacts. A package counts as done when a build of the same identity is
recorded as done and the channel folder still holds the very file that it recorded.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedstock_tools.build.contents import sha256_of
from feedstock_tools.errors import WorkError

__all__ = ["SCHEMA_VERSION", "BuildRecord", "Ledger", "PackageRecord", "now"]

#: Of the tables below; a ledger that says more was written by a newer program and is left alone.
SCHEMA_VERSION = 1
_WAIT_SECONDS = 10.0

_TABLES = """
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
);
"""

_SELECT_BUILDS = (
    "SELECT identity, configuration, row, output, result, started, log, engine, channels, marks, reason, ended,"
    " seconds, id FROM builds"
)
_SELECT_PACKAGES = "SELECT channel, file, size, sha256, mtime_ns FROM packages WHERE build = ? ORDER BY file"


@dataclass(frozen=True, slots=True)
class PackageRecord:
    """A package as it was when it entered the channel. `channel` and `file` are paths below the ledger's folder."""

    channel: str
    file: str
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """One build of one output.

    Attributes:
        identity: the hash of all that went in, channel and engine included.
        result: `running`, `done`, `failed` or `interrupted`; `reason` says more of the last two.
        started: and `ended`: UTC, as ISO 8601; `seconds` is the time that the engine took.
        log: the log file's path below the ledger's folder.
        marks: what is to be known of it: `channel` is `stand-in` for a build on the stand-in channel, `tests` is
            `left out` where they were not run, and why under `tests-reason`.
    """

    identity: str
    configuration: str
    row: str
    output: str
    result: str
    started: str
    log: str
    engine: str
    channels: tuple[str, ...]
    marks: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    ended: str | None = None
    seconds: float | None = None
    packages: tuple[PackageRecord, ...] = ()
    id: int | None = None


def now() -> str:
    """The time in the ledger's form."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Ledger:
    """An open ledger. Close it, or use it as a context.

    Raises:
        WorkError: (of every method) it is damaged, locked by another program, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        """Open the ledger at `path`, making it where it is missing.

        Raises:
            WorkError: also where a newer version of this program wrote it.
        """
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def begin(self, record: BuildRecord) -> BuildRecord:
        """Record a build that begins; what comes back has its `id`."""
        with self._explained():
            row = self._database.execute(
                "INSERT INTO builds (identity, configuration, row, output, result, started, log, engine, channels,"
                " marks) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
                (
                    *(record.identity, record.configuration, record.row, record.output, record.started, record.log),
                    *(record.engine, json.dumps(record.channels), json.dumps(dict(record.marks))),
                ),
            )
        return replace(record, id=row.lastrowid)

    def promise(self, record: BuildRecord) -> None:
        """Record the packages of a running build before they enter the channel; `settle` can then tell if they did."""
        self.finish(record)

    def finish(self, record: BuildRecord) -> None:
        """Record how a build that was begun has ended, with its packages, all or nothing."""
        with self._explained(), self._transaction():
            self._database.execute(
                "UPDATE builds SET result = ?, reason = ?, ended = ?, seconds = ? WHERE id = ?",
                (record.result, record.reason, record.ended, record.seconds, record.id),
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO packages (build, channel, file, size, sha256, mtime_ns)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (record.id, package.channel, package.file, package.size, package.sha256, package.mtime_ns)
                    for package in record.packages
                ],
            )

    def settle(self, row: str) -> tuple[BuildRecord, ...]:
        """Decide on the builds of a row that a killed run left as running, and give them; the row's lock is to be held.

        One whose packages are in the channel, as they were recorded just before they went there, is done. Whether they
        were indexed is not known.
        """
        settled = []
        for record in self._records("row = ? AND result = 'running'", (row,)):
            done = bool(record.packages) and all(self._is_intact(package) for package in record.packages)
            reason = "" if done else "the run that made it was killed"
            ended = replace(record, result="done" if done else "interrupted", reason=reason, ended=now())
            self.finish(ended)
            settled.append(ended)
        return tuple(settled)

    def done(self, identity: str) -> BuildRecord | None:
        """The newest build of an identity that is done and whose packages are still what they were; else None."""
        for record in self._records("identity = ? AND result = 'done' ORDER BY id DESC", (identity,)):
            if record.packages and all(self._is_intact(package) for package in record.packages):
                return record
        return None

    def identities_done(self) -> frozenset[str]:
        """The identities of all builds that are recorded as done; `done` says of each whether it still is."""
        with self._explained():
            rows = self._database.execute("SELECT DISTINCT identity FROM builds WHERE result = 'done'")
            return frozenset(identity for (identity,) in rows)

    def builds(self) -> tuple[BuildRecord, ...]:
        """Every build, the oldest first."""
        return tuple(self._records("1 ORDER BY id", ()))

    def _is_intact(self, package: PackageRecord) -> bool:
        """Whether the channel holds this file: by size and time of change, and where that differs by its bytes."""
        path = self.path.parent / package.channel / package.file
        try:
            state = path.stat()
            if state.st_size != package.size:
                return False
            return state.st_mtime_ns == package.mtime_ns or sha256_of(path) == package.sha256
        except OSError:
            return False

    def _records(self, condition: str, values: Sequence[str]) -> list[BuildRecord]:
        with self._explained():
            rows = self._database.execute(f"{_SELECT_BUILDS} WHERE {condition}", values).fetchall()
            return [self._record(row) for row in rows]

    def _record(self, row: Sequence[Any]) -> BuildRecord:
        *texts, channels, marks, reason, ended, seconds, number = row
        identity, configuration, name, output, result, started, log, engine = texts
        found = self._database.execute(_SELECT_PACKAGES, (number,))
        return BuildRecord(
            identity=identity,
            configuration=configuration,
            row=name,
            output=output,
            result=result,
            started=started,
            log=log,
            engine=engine,
            channels=tuple(json.loads(channels)),
            marks=json.loads(marks),
            reason=reason,
            ended=ended,
            seconds=seconds,
            packages=tuple(PackageRecord(*package) for package in found),
            id=number,
        )

    def _prepare(self) -> None:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise WorkError(
                f"a newer feedstock-tools wrote this ledger: its form is {version}, and {SCHEMA_VERSION} is known here",
                path=self.path,
                hint="Update feedstock-tools, or give another --output-dir.",
            )
        if version == 0:
            with self._transaction():
                if self._database.execute("PRAGMA user_version").fetchone()[0] == 0:
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._database.execute(statement)
                    self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            busy = "locked" in str(error) or "busy" in str(error)
            hint = "Another program holds it. Wait for it to end, then try again." if busy else None
            raise WorkError(f"the ledger cannot be used: {error}", path=self.path, hint=hint) from error
        except sqlite3.DatabaseError as error:
            hint = "Move it away: a new one is begun, and what it recorded is built again."
            raise WorkError(f"the ledger is damaged: {error}", path=self.path, hint=hint) from error
        except OSError as error:
            raise WorkError(f"the ledger cannot be used: {error.strerror or error}", path=self.path) from error
