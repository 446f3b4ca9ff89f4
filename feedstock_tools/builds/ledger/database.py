"""The file of a ledger and its queries."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from feedstock_tools.builds.ledger.damage import checked
from feedstock_tools.builds.ledger.records import (
    BuildRecord,
    EnvironmentRecord,
    PackageRecord,
    SolvedPackage,
    TestRecord,
    now,
)
from feedstock_tools.builds.ledger.schema import SCHEMA_VERSION, bring_up_to_date
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError

__all__ = ["Ledger"]

_WAIT_SECONDS = 10.0
_SELECT_PACKAGES = "SELECT channel, file, size, sha256, mtime_ns FROM packages WHERE build = ? ORDER BY file"
#: The stored fields of a package of an environment; `dataclasses.asdict` takes ten times as long.
_SOLVED = tuple(field.name for field in fields(SolvedPackage))
#: The columns that change when a build ends.
_ENDING = ("result", "reason", "ended", "seconds", "peak_memory")


class Ledger:
    """An open ledger, which several threads may share. Close it, or use it as a context.

    Raises:
        WorkError: (of every method) it is damaged, locked by another program, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        """Open the ledger at `path`, creating it if it is missing; one of an earlier form is upgraded.

        Raises:
            WorkError: also if a newer version of this program wrote it.
        """
        self.path = path
        self._turn = threading.RLock()
        self._opened = False
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        self._opened = True

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._database.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context whose records are written together, all or nothing; other threads and programs wait meanwhile.

        For many records, since each one alone waits for the disk. The block may only record.
        """
        with self._explained(), self._transaction():
            yield

    def begin(self, record: BuildRecord) -> BuildRecord:
        """Record a build that begins, as running; returns the record with its `id`."""
        running = replace(record, result="running")
        with self._explained():
            return replace(running, id=self._insert("builds", running))

    def give_sign(self, machine: str, process: str) -> None:
        """Record that the builds of a run go on, for readers on other machines."""
        with self._explained():
            self._database.execute(
                "UPDATE builds SET seen = ? WHERE result = 'running' AND machine = ? AND process = ?",
                (now(), machine, process),
            )

    def promise(self, record: BuildRecord, environments: Sequence[EnvironmentRecord] = ()) -> None:
        """Record the packages of a running build before they enter the channel; `settle` can then determine whether
        they did."""
        self.finish(record, environments)

    def finish(self, record: BuildRecord, environments: Sequence[EnvironmentRecord] = ()) -> None:
        """Record the end of a build, with its packages and environments, all or nothing."""
        changes = ", ".join(f"{column} = ?" for column in _ENDING)
        with self._explained(), self._transaction():
            self._database.execute(
                f"UPDATE builds SET {changes} WHERE id = ?",  # noqa: S608 - names of columns
                (*(getattr(record, column) for column in _ENDING), record.id),
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO packages (build, channel, file, size, sha256, mtime_ns)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (record.id, each.channel, each.file, each.size, each.sha256, each.mtime_ns)
                    for each in record.packages
                ],
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO environments (build, environment, packages) VALUES (?, ?, ?)",
                [(record.id, each.environment, _environment_json(each)) for each in environments],
            )

    def settle(self, row: str, identities: Sequence[str] = ()) -> tuple[BuildRecord, ...]:
        """Settle the builds of a row, and of some identities, that a killed run left as running, and return them.

        The caller must hold the locks of the row and of those outputs. A build whose packages are in the channel, as
        they were recorded just before, is done. Whether they were indexed is unknown.
        """
        marks = ", ".join("?" for _ in identities)
        settled = []
        for record in self._records(f"result = 'running' AND (row = ? OR identity IN ({marks}))", (row, *identities)):
            done = self.holds(record)
            reason = "" if done else "the run that made it was killed"
            ended = replace(record, result="done" if done else "interrupted", reason=reason, ended=now())
            self.finish(ended)
            settled.append(ended)
        return tuple(settled)

    def done(self, identity: str) -> BuildRecord | None:
        """The newest finished build of an identity whose packages are unchanged; else None."""
        for record in self._records("identity = ? AND result = 'done' ORDER BY id DESC", (identity,)):
            if self.holds(record):
                return record
        return None

    def identities_done(self) -> frozenset[str]:
        """The identities of all builds recorded as done; `done` checks whether one still is."""
        with self._explained():
            rows = self._database.execute("SELECT DISTINCT identity FROM builds WHERE result = 'done'")
            return frozenset(identity for (identity,) in rows)

    def builds(self) -> tuple[BuildRecord, ...]:
        """Every build, the oldest first."""
        return tuple(self._records("1 ORDER BY id", ()))

    def environments(self, build: int) -> tuple[EnvironmentRecord, ...]:
        """The environments of a build (its `id`), by name."""
        with self._explained(), self._undamaged():
            rows = self._database.execute(
                "SELECT environment, packages FROM environments WHERE build = ? ORDER BY environment", (build,)
            ).fetchall()
            return tuple(
                checked(EnvironmentRecord(name, tuple(checked(SolvedPackage(**each)) for each in json.loads(packages))))
                for name, packages in rows
            )

    def record_test(self, record: TestRecord) -> TestRecord:
        """Record a finished test of a package; returns the record with its `id`."""
        with self._explained():
            return replace(record, id=self._insert("tests", record))

    def tests(self, sha256: str | None = None) -> tuple[TestRecord, ...]:
        """The tests of a package by its hash, or of all packages, the oldest first."""
        condition, values = ("1", ()) if sha256 is None else ("sha256 = ?", (sha256,))
        with self._explained(), self._undamaged():
            columns = ", ".join(TestRecord.COLUMNS)
            rows = self._database.execute(
                f"SELECT {columns}, id FROM tests WHERE {condition} ORDER BY id",  # noqa: S608 - names of columns
                values,
            ).fetchall()
            return tuple(checked(TestRecord(**_fields(TestRecord, row), id=row[-1])) for row in rows)

    def holds(self, record: BuildRecord) -> bool:
        """Whether the channel holds the packages of a build, unchanged since they were recorded."""
        return bool(record.packages) and all(self.is_intact(package) for package in record.packages)

    def is_intact(self, package: PackageRecord) -> bool:
        """Whether the channel holds this file: by size and modification time, and if that differs by its bytes."""
        path = self.path.parent / package.channel / package.file
        try:
            state = path.stat()
            if state.st_size != package.size:
                return False
            return state.st_mtime_ns == package.mtime_ns or sha256_of(path) == package.sha256
        except OSError:
            return False

    def _insert(self, table: str, record: BuildRecord | TestRecord) -> int | None:
        columns = ", ".join(f'"{column}"' for column in record.COLUMNS)
        marks = ", ".join("?" for _ in record.COLUMNS)
        row = self._database.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608 - names of columns
            [_stored(record, column) for column in record.COLUMNS],
        )
        return row.lastrowid

    def _records(self, condition: str, values: Sequence[str]) -> list[BuildRecord]:
        columns = ", ".join(f'"{column}"' for column in BuildRecord.COLUMNS)
        with self._explained(), self._undamaged():
            rows = self._database.execute(
                f"SELECT {columns}, id FROM builds WHERE {condition}",  # noqa: S608 - names of columns
                values,
            ).fetchall()
            return [self._record(row) for row in rows]

    def _record(self, row: Sequence[Any]) -> BuildRecord:
        found = self._database.execute(_SELECT_PACKAGES, (row[-1],))
        fields = _fields(BuildRecord, row)
        packages = tuple(checked(PackageRecord(*package)) for package in found)
        record = BuildRecord(**{**fields, "channels": tuple(fields["channels"])}, packages=packages, id=row[-1])
        return checked(record)

    def _prepare(self) -> None:
        form = bring_up_to_date(self._database)
        if form > SCHEMA_VERSION:
            raise WorkError(
                f"a newer feedstock-tools wrote this ledger: its form is {form}, but this version only knows "
                f"{SCHEMA_VERSION}",
                path=self.path,
                hint="Update feedstock-tools, or give another --output-dir.",
            )
        others = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        for (name,) in self._database.execute(others).fetchmany(1):
            raise self._damage(f"'{name}' is neither a table nor an index")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        within_another = self._database.in_transaction  # that of `at_once`
        if within_another:
            yield
            return
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """One thread's turn with the database; errors are converted to ours."""
        try:
            with self._turn:
                yield
        except sqlite3.OperationalError as error:
            if self._opened and not self.path.exists():
                again = "Run the command again: missing packages are built again."
                raise WorkError("the ledger was removed while it was in use", path=self.path, hint=again) from error
            busy = "locked" in str(error) or "busy" in str(error)
            hint = "Another program holds it. Wait for it to end, then try again." if busy else None
            raise WorkError(f"the ledger cannot be used: {error}", path=self.path, hint=hint) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the second if SQLite quotes damaged text
            raise self._damage(error) from error
        except OSError as error:
            hint = "Give a writable folder with --output-dir."
            raise WorkError(
                f"the ledger cannot be used: {error.strerror or error}", path=self.path, hint=hint
            ) from error

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Create records from the database, which may contain anything."""
        try:
            yield
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damage(error) from error

    def _damage(self, error: object) -> WorkError:
        hint = "Move it away: a new one is created, and its builds are made again."
        return WorkError(f"the ledger is damaged: {error}", path=self.path, hint=hint)


def _stored(record: BuildRecord | TestRecord, column: str) -> Any:
    """A field as its column holds it."""
    value = getattr(record, column)
    if column in record.JSON:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value)
    return value


def _fields(kind: type[BuildRecord | TestRecord], row: Sequence[Any]) -> dict[str, Any]:
    """The inverse of `_stored` for a whole row, whose columns may be followed by others."""
    pairs = zip(kind.COLUMNS, row, strict=False)
    fields = {column: json.loads(value) if column in kind.JSON else value for column, value in pairs}
    if fields["result"] not in kind.RESULTS:
        raise ValueError("it has an invalid 'result'")
    return fields


def _environment_json(record: EnvironmentRecord) -> str:
    return json.dumps([{name: getattr(package, name) for name in _SOLVED} for package in record.packages])
