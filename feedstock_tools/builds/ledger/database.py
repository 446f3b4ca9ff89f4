"""The file of a ledger: its form, and its queries."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from feedstock_tools.builds.ledger import records
from feedstock_tools.builds.ledger.seal import is_sealed, key_of_user, seal_of
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError

#: The number of the form. It grows with each change of the statements below; ledgers of another form are refused.
FORM = 6
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
    seen TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL DEFAULT ''
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
    benchmark TEXT NOT NULL DEFAULT '{}',
    seal TEXT NOT NULL DEFAULT ''
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
    differences TEXT NOT NULL,
    seal TEXT NOT NULL DEFAULT ''
);
CREATE INDEX comparisons_by_package ON comparisons (sha256)"""
_PACKAGE_OF_BUILD = "build, channel, file, size, sha256, mtime_ns"
_OfPackage = TypeVar("_OfPackage", records.TestRecord, records.ComparisonRecord)
_Stored = TypeVar("_Stored", records.BuildRecord, records.TestRecord, records.ComparisonRecord)
_WAIT_SECONDS = 10.0
#: No value of a ledger has more bytes, whatever a damaged one claims.
_LONGEST = 64 << 20
#: The endings of files that SQLite keeps beside a database.
_BESIDE = ("-journal", "-wal", "-shm")
#: A build makes one package; a damaged ledger may claim any number.
_MOST_PACKAGES = 1000
#: Builds of one identity that are read as running; more than one is a ledger of runs that were killed.
_MOST_RUNNING = 100
#: Builds of one identity that another user sealed, before the search for one of this user ends.
_MOST_BROUGHT = 1000
_BEGINNING = datetime.min.replace(tzinfo=UTC)
#: The columns that change when a build ends.
_ENDING = ("result", "reason", "ended", "seconds", "peak_memory", "marks", "seal")
_FREE = "Free some space, or give another folder with --output-dir. Nothing that was recorded before is lost."
#: Codes of SQLite (https://www.sqlite.org/rescode.html), the particular ones first → what happened, and what to do.
_REASONS = {
    frozenset({sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK}): (
        "the file system has no locks",
        "Give a folder on another file system with --output-dir.",
    ),
    frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}): (
        "it is locked",
        "Another program holds it. Wait for it to end, then try again.",
    ),
    frozenset({sqlite3.SQLITE_FULL}): ("the disk is full", _FREE),
    frozenset({sqlite3.SQLITE_IOERR}): (
        "it cannot be read or written: the disk, a quota or a limit on the size of files (`ulimit -f`) ends it",
        _FREE,
    ),
    frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}): (
        "it cannot be written",
        "Give a writable folder with --output-dir.",
    ),
}


class Ledger:
    """An open ledger, which several threads may share. Close it, or use it as a context.

    Raises:
        WorkError: (of every method) it is damaged, locked by another program, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        """Open the ledger at `path`, creating it if it is missing.

        Raises:
            WorkError: also if it has another form than this version writes.
        """
        self.path = path
        self._key = key_of_user()
        self._turn = threading.RLock()
        self._opened = False
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            for part in (path, *(path.with_name(path.name + ending) for ending in _BESIDE)):
                if part.exists() and not part.is_file():  # opening a FIFO would wait
                    raise WorkError("the ledger is not a file", path=part)
            self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
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
        with self._turn:
            self._database.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context whose records are written together, all or nothing; other threads and programs wait meanwhile.

        For many records, since each one alone waits for the disk. The block may only record.
        """
        with self._explained(), self._transaction():
            yield

    def begin(self, record: records.BuildRecord) -> records.BuildRecord:
        """Record a build that begins, as running; returns the record with its `id`."""
        running = replace(record, result="running")
        with self._explained():
            return replace(running, id=self._insert(running))

    def give_sign(self, machine: str, process: str) -> None:
        """Record that the builds of a run go on, for readers on other machines."""
        with self._explained():
            self._database.execute(
                "UPDATE builds SET seen = ? WHERE result = 'running' AND machine = ? AND process = ?",
                (records.now(), machine, process),
            )

    def promise(self, record: records.BuildRecord, environments: Sequence[records.EnvironmentRecord] = ()) -> None:
        """Record the packages of a running build before they enter the channel; `settle` can then determine whether
        they did."""
        self.finish(record, environments)

    def finish(self, record: records.BuildRecord, environments: Sequence[records.EnvironmentRecord] = ()) -> None:
        """Record the end of a build, with its packages and environments, all or nothing, under the user's seal."""
        record = self._sealed(record)
        changes = ", ".join(f"{column} = ?" for column in _ENDING)
        with self._explained(), self._transaction():
            self._database.execute(
                f"UPDATE builds SET {changes} WHERE id = ?",  # noqa: S608 - names of columns
                (*(records.stored(record, column) for column in _ENDING), record.id),
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
                [(record.id, each.environment, records.environment_json(each)) for each in environments],
            )

    def _sealed(self, record: _Stored) -> _Stored:
        return replace(record, seal="" if self._key is None else seal_of(record, self._key))

    def settle(self, row: str, identities: Sequence[str] = ()) -> tuple[records.BuildRecord, ...]:
        """Settle the builds of a row, and of some identities, that a killed run left as running, and return them.

        The caller must hold the locks of the row and of those outputs. A build whose packages are in the channel, as
        they were recorded just before, is done. Whether they were indexed is unknown.
        """
        marks = ", ".join("?" for _ in identities)
        settled = []
        for record in self._records(f"result = 'running' AND (row = ? OR identity IN ({marks}))", (row, *identities)):
            done = self.counts(record) and self.holds(record)
            reason = "" if done else "the run that made it was killed"
            ended = replace(record, result="done" if done else "interrupted", reason=reason, ended=records.now())
            self.finish(ended)
            settled.append(ended)
        return tuple(settled)

    def done(self, identity: str) -> records.BuildRecord | None:
        """The newest finished build of an identity whose packages are unchanged; else None."""
        held = self._newest_held(identity)
        return None if held is None else self._numbered([held])[0]

    def _newest_held(self, identity: str) -> int | None:
        """The number of that build; it reads the state of a file once, however many builds made it."""
        chosen = "SELECT id FROM builds WHERE identity = ? AND result = 'done'"
        seen: dict[Path, tuple[int, int] | None] = {}
        digests: dict[Path, str] = {}
        brought = 0
        with self._explained(), self._undamaged():
            rows = self._database.execute(
                f"SELECT {_PACKAGE_OF_BUILD} FROM packages WHERE build IN ({chosen}) ORDER BY build DESC",  # noqa: S608
                (identity,),
            )
            for number, of_build in groupby(rows, key=itemgetter(0)):
                packages = records.packages_of([row[1:] for row in islice(of_build, _MOST_PACKAGES)])
                if all(self._is_intact(package, seen, digests) for package in packages):
                    if self.counts(self._numbered([number])[0]):
                        return int(number)
                    brought += 1
                if brought > _MOST_BROUGHT:
                    break
        return None

    def identities_done(self, identities: Iterable[str]) -> frozenset[str]:
        """Those of some identities that have builds recorded as done; `done` checks whether one still is."""
        found: set[str] = set()
        with self._explained():
            for part, marks in records.parts(identities):
                condition = f"result = 'done' AND identity IN ({marks})"
                rows = self._database.execute(f"SELECT DISTINCT identity FROM builds WHERE {condition}", part)  # noqa: S608
                found.update(identity for (identity,) in rows)
        return frozenset(found)

    def count(self) -> tuple[int, int, int]:
        """The number of builds, of tests, and of comparisons."""
        counts = "(SELECT count(*) FROM builds), (SELECT count(*) FROM tests), (SELECT count(*) FROM comparisons)"
        with self._explained():
            builds, tests, comparisons = self._database.execute(f"SELECT {counts}").fetchone()
            return builds, tests, comparisons

    def builds(self) -> tuple[records.BuildRecord, ...]:
        """Every build, the oldest first. A ledger of years has tens of thousands: ask for less if less will do."""
        return tuple(self._records("1 ORDER BY id", ()))

    def builds_of(self, identities: Iterable[str]) -> tuple[records.BuildRecord, ...]:
        """The builds that decide the state of some identities, the oldest first: of each identity the newest one, those
        that are running, and the newest done one, that with unchanged packages if there is one."""
        chosen: set[int] = set()
        done: dict[str, list[int]] = {}
        with self._explained():
            for part, marks in records.parts(identities):
                newest: set[str] = set()
                running: Counter[str] = Counter()
                question = f"SELECT identity, id, result FROM builds WHERE identity IN ({marks}) ORDER BY id DESC"  # noqa: S608
                for identity, number, result in self._database.execute(question, part):
                    if result == "done":
                        done.setdefault(identity, []).append(number)
                    running[identity] += result == "running"
                    if identity not in newest or (result == "running" and running[identity] <= _MOST_RUNNING):
                        chosen.add(number)
                    newest.add(identity)
        found = {record.id: record for record in self._numbered({*chosen, *(ids[0] for ids in done.values())})}
        for ids in done.values():
            newest_done = found[ids[0]]
            is_it = self.counts(newest_done) and self.holds(newest_done)
            if len(ids) > 1 and not is_it and (held := self.done(newest_done.identity)) is not None:
                found[held.id] = held
        return tuple(sorted(found.values(), key=_number))

    def done_in(self, places: Iterable[tuple[str, str]], last: int) -> tuple[records.BuildRecord, ...]:
        """The last finished builds in each place, a row and an output; the oldest first."""
        ids: set[int] = set()
        chosen = "WHERE row = ? AND output = ? AND result = 'done' ORDER BY id DESC LIMIT ?"
        with self._explained():
            for place in dict.fromkeys(places):
                rows = self._database.execute(f"SELECT id FROM builds {chosen}", (*place, last))  # noqa: S608
                ids.update(number for (number,) in rows)
        return self._numbered(ids)

    def done_of_output(self, output: str) -> tuple[records.BuildRecord, ...]:
        """The last finished build of an output in each row; the oldest first."""
        chosen = "WHERE output = ? AND result = 'done' GROUP BY row"
        with self._explained():
            rows = self._database.execute(f"SELECT max(id) FROM builds {chosen}", (output,)).fetchall()  # noqa: S608
        return self._numbered(number for (number,) in rows)

    def done_as(self, files: Iterable[str]) -> tuple[records.BuildRecord, ...]:
        """The finished builds of packages with these names (`linux-64/tiny-1-0.conda`), the oldest first."""
        found: list[records.BuildRecord] = []
        for part, marks in records.parts(files):
            builds = f"SELECT build FROM packages WHERE file IN ({marks})"  # noqa: S608
            found += self._records(f"result = 'done' AND id IN ({builds})", part)
        return tuple(sorted({record.id: record for record in found}.values(), key=_number))

    def last_builds(self, configurations: Iterable[str], last: int) -> tuple[records.BuildRecord, ...]:
        """The last builds of some configurations, whatever their result; the oldest first."""
        found: list[records.BuildRecord] = []
        for part, marks in records.parts(configurations):
            found += self._records(f"configuration IN ({marks}) ORDER BY id DESC LIMIT ?", [*part, last])
        return tuple(sorted(found, key=_number)[-last:])

    def environments(self, build: int) -> tuple[records.EnvironmentRecord, ...]:
        """The environments of a build (its `id`), by name."""
        with self._explained(), self._undamaged():
            rows = self._database.execute(
                "SELECT environment, packages FROM environments WHERE build = ? ORDER BY environment", (build,)
            ).fetchall()
            return tuple(records.environment_of(*row) for row in rows)

    def record_test(self, record: records.TestRecord) -> records.TestRecord:
        """Record a finished test of a package; returns the record with its `id`."""
        record = self._sealed(record)
        with self._explained():
            return replace(record, id=self._insert(record))

    def tests(self, packages: Iterable[str] | None = None) -> tuple[records.TestRecord, ...]:
        """The tests of some packages by their hashes, or of all packages; the oldest first."""
        return self._of_packages(records.TestRecord, packages)

    def record_comparison(self, record: records.ComparisonRecord) -> records.ComparisonRecord:
        """Record the comparison of a package with a second build; returns the record with its `id`."""
        record = self._sealed(record)
        with self._explained():
            return replace(record, id=self._insert(record))

    def comparisons(self, packages: Iterable[str] | None = None) -> tuple[records.ComparisonRecord, ...]:
        """The comparisons of some packages by their hashes, or of all packages; the oldest first."""
        return self._of_packages(records.ComparisonRecord, packages)

    def _of_packages(self, kind: type[_OfPackage], packages: Iterable[str] | None) -> tuple[_OfPackage, ...]:
        """The records of a kind that belong to some packages by their hashes, or to any; the oldest first.

        By time and not by number: those of other machines are recorded here later than they were made.
        """
        found: list[_OfPackage] = []
        chosen: Iterable[tuple[list[str], str]] = [([], "1")]
        if packages is not None:
            chosen = ((part, f"sha256 IN ({marks})") for part, marks in records.parts(packages))
        with self._explained(), self._undamaged():
            for part, condition in chosen:
                rows = self._database.execute(
                    f"SELECT {records.query_of(kind)} FROM {kind.TABLE} WHERE {condition}",  # noqa: S608
                    part,
                )
                found += (self._judged(records.record_of(kind, row)) for row in rows)
        return tuple(sorted(found, key=_age))

    def counts(self, record: records.BuildRecord | records.TestRecord | records.ComparisonRecord) -> bool:
        """Whether a record is this user's; where no key can be kept this is unknown, and all count for building."""
        return not record.brought or self._key is None

    def holds(self, record: records.BuildRecord) -> bool:
        """Whether the channel holds the packages of a build, unchanged since they were recorded."""
        return bool(record.packages) and all(self.is_intact(package) for package in record.packages)

    def is_intact(self, package: records.PackageRecord) -> bool:
        """Whether the channel holds this file: by size and modification time, and if that differs by its bytes."""
        return self._is_intact(package, {}, {})

    def _is_intact(
        self, package: records.PackageRecord, seen: dict[Path, tuple[int, int] | None], digests: dict[Path, str]
    ) -> bool:
        """The same, with the known sizes and times of files, and their hashes."""
        path = self.path.parent / package.channel / package.file
        try:
            if path not in seen:
                seen[path] = None
                state = path.stat()
                seen[path] = (state.st_size, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else None
            known = seen[path]
            if known is None or known[0] != package.size:
                return False
            if known[1] != package.mtime_ns and path not in digests:
                digests[path] = sha256_of(path)
            return known[1] == package.mtime_ns or digests[path] == package.sha256
        except OSError:
            return False

    def _insert(self, record: records.BuildRecord | records.TestRecord | records.ComparisonRecord) -> int | None:
        names = records.columns_of(type(record))
        columns, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
        row = self._database.execute(
            f"INSERT INTO {record.TABLE} ({columns}) VALUES ({marks})",  # noqa: S608 - names of columns
            [records.stored(record, name) for name in names],
        )
        return row.lastrowid

    def _numbered(self, ids: Iterable[int]) -> tuple[records.BuildRecord, ...]:
        """Builds by their numbers, the oldest first."""
        found: list[records.BuildRecord] = []
        for part, marks in records.parts(sorted(ids)):
            found += self._records(f"id IN ({marks}) ORDER BY id", part)
        return tuple(found)

    def _records(self, condition: str, values: Sequence[str | int]) -> list[records.BuildRecord]:
        """The builds that a condition selects, with their packages: two queries, however many there are."""
        chosen = f"FROM builds WHERE {condition}"
        with self._explained(), self._undamaged():
            rows = self._database.execute(f"SELECT {records.query_of(records.BuildRecord)} {chosen}", values).fetchall()
            packages: dict[int, list[Sequence[Any]]] = {}
            if rows:
                of_those = f"WHERE build IN (SELECT id {chosen}) ORDER BY build, file"
                for build, *package in self._database.execute(
                    f"SELECT {_PACKAGE_OF_BUILD} FROM packages {of_those}",  # noqa: S608
                    values,
                ):
                    of_build = packages.setdefault(build, [])
                    of_build.append(package)
                    if len(of_build) > _MOST_PACKAGES:
                        raise ValueError(f"build {build} has more than {_MOST_PACKAGES} packages")
            return [self._judged(records.build_of(row, packages.get(row[-1], ()))) for row in rows]

    def _judged(self, record: _Stored) -> _Stored:
        return record if is_sealed(record, self._key) else replace(record, brought=True)

    def _prepare(self) -> None:
        reason = _why_no_ledger(self._database)
        if reason:
            raise self._damage(reason)
        if _form_of(self._database) == 0:
            _create(self._database)
        form = _form_of(self._database)
        if form != FORM:
            raise WorkError(
                f"another version of feedstock-tools wrote this ledger: its form is {form}, and this version reads "
                f"form {FORM} only",
                path=self.path,
                hint="Use that version, give another --output-dir, or move the ledger away: its builds are made again.",
            )

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
            raise self._unusable(error) from error
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

    def _unusable(self, error: sqlite3.OperationalError) -> WorkError:
        """The system's reason in words: SQLite reports a full disk, a limit and a missing lock in the same way."""
        reason, hint = _words_of(error)
        return WorkError(f"the ledger cannot be used: {reason}", path=self.path, hint=hint)

    def _damage(self, error: object) -> WorkError:
        hint = "Move it away: a new one is created, and its builds are made again."
        return WorkError(f"the ledger is damaged: {error}", path=self.path, hint=hint)


def _form_of(database: sqlite3.Connection) -> int:
    """The number of the form of a ledger; 0 for an empty database."""
    form: int = database.execute("PRAGMA user_version").fetchone()[0]
    return form


def _create(database: sqlite3.Connection) -> None:
    """Create the tables and indexes of an empty database, all or nothing, unless another process has done so."""
    database.execute("BEGIN IMMEDIATE")
    try:
        if _form_of(database) == 0:
            for statement in _STATEMENTS.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {FORM}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # a full disk has ended it
            database.execute("ROLLBACK")
        raise


def _why_no_ledger(database: sqlite3.Connection) -> str | None:
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


def _words_of(error: sqlite3.OperationalError) -> tuple[str, str | None]:
    """What happened, and what to do about it, if that is known."""
    code = getattr(error, "sqlite_errorcode", 0)
    return next(
        (words for codes, words in _REASONS.items() if code in codes or code & 0xFF in codes), (str(error), None)
    )


def _number(record: records.BuildRecord) -> int:
    return record.id or 0


def _age(record: records.TestRecord | records.ComparisonRecord) -> tuple[datetime, int]:
    """When it ended, and its number; one with an invalid time counts as the oldest."""
    return records.moment_of(record.ended or record.started) or _BEGINNING, record.id or 0
