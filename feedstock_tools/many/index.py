"""The index of a workspace: a file of SQLite that has each feedstock as of its last reading.

A feedstock is read again only when its files have another id (its git tree). Each is written in a transaction of its
own, so that an interrupted run goes on where it ended.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.bounds.limits import READING, Bounds
from feedstock_tools.bounds.pool import each_bounded
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.many.reading import Indexed, read_member
from feedstock_tools.many.workspace import Member, members

#: The index of a workspace, unless another file is named.
INDEX = ".feedstock-tools-index.sqlite"
#: Changes with the tables, and so does the program's version, whose readings may differ.
_FORM = f"2 {__version__}"
_TABLES = """
BEGIN;
CREATE TABLE form (form TEXT NOT NULL);
CREATE TABLE feedstock (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, tree TEXT NOT NULL,
    is_repository INTEGER NOT NULL, format TEXT NOT NULL, providers TEXT NOT NULL, error TEXT NOT NULL,
    seconds REAL NOT NULL, words BLOB NOT NULL
);
CREATE TABLE migration (
    feedstock INTEGER NOT NULL REFERENCES feedstock ON DELETE CASCADE, name TEXT NOT NULL, stamp TEXT NOT NULL
);
CREATE TABLE job (
    id INTEGER PRIMARY KEY, feedstock INTEGER NOT NULL REFERENCES feedstock ON DELETE CASCADE, name TEXT NOT NULL,
    platform TEXT NOT NULL
);
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE value (
    job INTEGER REFERENCES job ON DELETE CASCADE, key INTEGER, value INTEGER, PRIMARY KEY (job, key, value)
) WITHOUT ROWID;
CREATE TABLE package (
    id INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES job ON DELETE CASCADE, name INTEGER NOT NULL,
    version TEXT NOT NULL, noarch INTEGER NOT NULL
);
CREATE TABLE requirement (
    package INTEGER REFERENCES package ON DELETE CASCADE, section TEXT, name INTEGER,
    PRIMARY KEY (package, section, name)
) WITHOUT ROWID;
CREATE TABLE answer (
    id INTEGER PRIMARY KEY, feedstock INTEGER NOT NULL REFERENCES feedstock ON DELETE CASCADE, inputs TEXT NOT NULL,
    answer BLOB NOT NULL
);
CREATE INDEX answers_of ON answer (feedstock, inputs);
CREATE INDEX migrations_of ON migration (feedstock);
CREATE INDEX jobs_of ON job (feedstock);
CREATE INDEX packages_of ON package (job);
CREATE INDEX packages_named ON package (name);
CREATE INDEX values_of_key ON value (key);
CREATE INDEX requirements_on ON requirement (name);
"""
#: How many answers about a feedstock are kept.
_ANSWERS = 8
_FORGET_ANSWERS = """
DELETE FROM answer WHERE feedstock = ? AND id NOT IN (
    SELECT id FROM answer WHERE feedstock = ? ORDER BY id DESC LIMIT ?
)
"""
_FIND = """
WITH cuda AS (
    SELECT feedstock, count(DISTINCT job.id) AS jobs FROM job JOIN value ON value.job = job.id
    JOIN text AS k ON k.id = key JOIN text AS v ON v.id = value
    WHERE k.text = 'cuda_compiler_version' AND v.text != 'None' GROUP BY feedstock
)
SELECT f.name, f.format, f.providers, (SELECT count(*) FROM job WHERE feedstock = f.id), coalesce(cuda.jobs, 0), f.error
FROM feedstock AS f LEFT JOIN cuda ON cuda.feedstock = f.id
WHERE (:form IS NULL OR f.format = :form) AND (NOT :cuda OR cuda.jobs > 0)
AND (:key IS NULL OR f.id IN (
    SELECT feedstock FROM text JOIN value ON key = text.id JOIN job ON job.id = value.job WHERE text = :key
))
AND (:makes IS NULL OR f.id IN (
    SELECT feedstock FROM text JOIN package ON package.name = text.id JOIN job ON job.id = job WHERE text = :makes
))
AND (:depends IS NULL OR f.id IN (
    SELECT feedstock FROM text JOIN requirement AS r ON r.name = text.id JOIN package ON package.id = package
    JOIN job ON job.id = job WHERE text = :depends
))
ORDER BY f.name
"""
#: Of some feedstocks: maker, user, and the package of the one that the other builds with.
_EDGES = """
SELECT DISTINCT maker.name, user.name, text FROM wanted JOIN feedstock AS user ON user.name = wanted.name
JOIN job AS uses ON uses.feedstock = user.id JOIN package AS used_by ON used_by.job = uses.id
JOIN requirement AS r ON r.package = used_by.id AND r.section IN ('build', 'host') JOIN text ON text.id = r.name
JOIN package AS made ON made.name = r.name JOIN job AS makes ON makes.id = made.job
JOIN feedstock AS maker ON maker.id = makes.feedstock JOIN wanted AS also ON also.name = maker.name
WHERE maker.id != user.id ORDER BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Updated:
    """What a run did with a feedstock: `read`, `unchanged`, `gone`, or `refused` with a reason."""

    name: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A feedstock that meets a question, with its number of jobs and of those with CUDA."""

    name: str
    format: str
    providers: tuple[str, ...]
    jobs: int
    cuda: int
    error: str


class Index:
    """An open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def update(self, folder: Path, jobs: int, bounds: Bounds = READING) -> Iterator[Updated]:
        """Read what is new or has changed in a workspace, and forget what is gone.

        Args:
            jobs: how many processes read in parallel.
            bounds: for each feedstock.

        Raises:
            InputError: there is no such folder.
            WorkError: the index cannot be written.
        """
        known = dict(self._connection.execute("SELECT name, tree FROM feedstock"))
        seen: set[str] = set()

        def changed() -> Iterator[Member]:
            for each in members(folder):
                if not isinstance(each, Member):
                    refused.append(Updated(each[0], "refused", each[1]))
                elif each.name not in seen:
                    seen.add(each.name)
                    if known.get(each.name) != each.tree:
                        yield each
                    else:
                        unchanged.append(each.name)

        refused: list[Updated] = []
        unchanged: list[str] = []
        for member, found in each_bounded(read_member, changed(), jobs, bounds):
            read = Indexed(member, error=str(found)) if isinstance(found, FeedstockError) else found
            self._write(read)
            yield Updated(member.name, "refused" if read.error else "read", read.error)
        yield from (Updated(name, "unchanged") for name in unchanged)
        yield from refused
        for name in sorted(known.keys() - seen):
            with self._connection:
                self._forget(name)
            yield Updated(name, "gone")

    def find(
        self,
        *,
        key: str | None = None,
        depends: str | None = None,
        makes: str | None = None,
        cuda: bool = False,
        form: str | None = None,
    ) -> tuple[Found, ...]:
        """The feedstocks that meet all of some conditions, by name.

        Args:
            key: a job uses this key of variants.
            depends: a package requires this one, in any environment, or constrains it.
            makes: a package has this name.
            cuda: a job has a CUDA version.
            form: `meta.yaml` or `recipe.yaml`.
        """
        asked = {"key": key, "depends": depends, "makes": makes, "cuda": cuda, "form": form}
        rows = self._connection.execute(_FIND, asked)
        return tuple(Found(name, made, tuple(providers.split()), *rest) for name, made, providers, *rest in rows)

    def members(self) -> Iterator[tuple[Member, frozenset[str], dict[str, str], str]]:
        """Each feedstock with the names that it mentions, its migrations by file name with their time stamps, and why
        none of both is known: empty if they are."""
        rows = self._connection.execute(
            "SELECT id, name, path, tree, is_repository, words, error FROM feedstock ORDER BY name"
        )
        for number, name, path, tree, is_repository, words, error in rows:
            own = self._connection.execute("SELECT name, stamp FROM migration WHERE feedstock = ?", (number,))
            mentioned = frozenset(zlib.decompress(words).decode().split())
            yield Member(name, Path(path), tree, bool(is_repository)), mentioned, dict(own), "" if mentioned else error

    def edges(self, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Of some feedstocks: maker, user, and the package of the one that the other builds with."""
        self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (name TEXT PRIMARY KEY)")
        self._connection.execute("DELETE FROM wanted")
        self._connection.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((name,) for name in names))
        yield from self._connection.execute(_EDGES)

    def recall(self, name: str, inputs: str) -> dict[str, Any] | None:
        """What was remembered of a feedstock as it is now, by a digest of the other inputs."""
        row = self._connection.execute(
            "SELECT answer FROM answer JOIN feedstock AS f ON f.id = feedstock WHERE name = ? AND inputs = ?",
            (name, inputs),
        ).fetchone()
        return json.loads(zlib.decompress(row[0])) if row else None

    def remember(self, name: str, inputs: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer about a feedstock until its files change, and the newest of them only."""
        packed = zlib.compress(json.dumps(answer).encode())
        with suppress(sqlite3.OperationalError), self._connection as database:  # an index may be there to read only
            (number,) = database.execute("SELECT id FROM feedstock WHERE name = ?", (name,)).fetchone()
            database.execute("DELETE FROM answer WHERE feedstock = ? AND inputs = ?", (number, inputs))
            database.execute(
                "INSERT INTO answer (feedstock, inputs, answer) VALUES (?, ?, ?)", (number, inputs, packed)
            )
            database.execute(_FORGET_ANSWERS, (number, number, _ANSWERS))

    def _write(self, read: Indexed) -> None:
        member = read.member
        try:
            with self._connection as database:
                self._forget(member.name)
                number = database.execute(
                    "INSERT INTO feedstock (name, path, tree, is_repository, format, providers, error, seconds, words)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(member.name, str(member.path), member.tree, member.is_repository, read.format),
                        *(" ".join(read.providers), read.error, read.seconds),
                        zlib.compress("\n".join(sorted(read.words)).encode()),
                    ),
                ).lastrowid
                own = ((number, name, stamp) for name, stamp in read.migrations.items())
                database.executemany("INSERT INTO migration VALUES (?, ?, ?)", own)
                for job in read.jobs:
                    made = database.execute(
                        "INSERT INTO job (feedstock, name, platform) VALUES (?, ?, ?)", (number, job.name, job.platform)
                    ).lastrowid
                    values = {
                        (self._text(key), self._text(value)) for key, items in job.values.items() for value in items
                    }
                    database.executemany("INSERT INTO value VALUES (?, ?, ?)", ((made, *pair) for pair in values))
                    for package in job.packages:
                        row = database.execute(
                            "INSERT INTO package (job, name, version, noarch) VALUES (?, ?, ?, ?)",
                            (made, self._text(package.name), package.version, package.noarch),
                        ).lastrowid
                        sections = {**package.requirements, "run_exports": package.run_exports}
                        required = (
                            (row, section, self._text(name)) for section, names in sections.items() for name in names
                        )
                        database.executemany("INSERT INTO requirement VALUES (?, ?, ?)", required)
        except sqlite3.Error as error:
            raise WorkError(f"the index cannot be written: {error}") from error

    def _forget(self, name: str) -> None:
        self._connection.execute("DELETE FROM feedstock WHERE name = ?", (name,))

    def _text(self, text: str) -> int:
        """The number of a text, which is kept once."""
        self._connection.execute("INSERT OR IGNORE INTO text (text) VALUES (?)", (text,))
        (number,) = self._connection.execute("SELECT id FROM text WHERE text = ?", (text,)).fetchone()
        return int(number)


@contextmanager
def opened_index(path: Path, *, make: bool = False) -> Iterator[Index]:
    """Open the index in a file; one of another version is replaced, since all of it can be read again.

    Raises:
        InputError: there is none, or it is something else.
        WorkError: it cannot be written.
    """
    if not make and not path.is_file():
        raise InputError("there is no index", path=path, hint="`feedstock-tools many index DIR` makes one.")
    try:
        with closing(_connected(path)) as connection:
            form = _form(connection)
        if form != _FORM:
            if not make:
                hint = "`feedstock-tools many index DIR` replaces it."
                raise InputError("the index is of another version", path=path, hint=hint)
            path.unlink(missing_ok=True)
        with closing(_connected(path)) as connection:
            if form != _FORM:
                connection.executescript(_TABLES)  # Its transaction takes in the next line: a kill leaves all or none.
                connection.execute("INSERT INTO form VALUES (?)", (_FORM,))
                connection.commit()
            yield Index(connection)
    except sqlite3.DatabaseError as error:
        raise InputError(f"is no index: {error}", path=path, hint="Remove it, or name another file.") from error


def _form(connection: sqlite3.Connection) -> str | None:
    """The form of the index; None for an empty file."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "form" not in tables:
        raise sqlite3.DatabaseError("it has other tables")
    return str(connection.execute("SELECT form FROM form").fetchone()[0]) if tables else None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
