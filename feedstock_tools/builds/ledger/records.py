"""The records of the ledger: builds, their packages, the environments they were made in, tests of packages.

SQLite accepts any value in any column, so the type of each is checked where a row of a table becomes a record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from feedstock_tools.channel.properties import ChannelProperties, properties_of

T = TypeVar("T")
_Record = TypeVar("_Record")
_Check: TypeAlias = "Callable[[Any], bool]"
#: Of a text: the longest reason, a solver's, has some kilobytes. Of a number: no size or time is greater.
_LONGEST = 1 << 20
_GREATEST = 1 << 63
#: The mark of a build whose package needs libraries that no requirement brings, or is doubtful in another way.
LIBRARIES = "libraries"
#: The number of values in one query, below the limit of every SQLite.
_AT_ONCE = 400


@dataclass(frozen=True, slots=True)
class PackageRecord:
    """A package at the time it entered the channel. `channel` and `file` are paths below the ledger's folder."""

    channel: str
    file: str
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class SolvedPackage:
    """A package of an environment. `sha256` is empty if the engine does not report it."""

    name: str
    version: str
    build: str
    subdir: str
    channel: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """A solved environment: `build`, `host`, `run` or `test`, and its packages."""

    environment: str
    packages: tuple[SolvedPackage, ...]


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """One build of one output.

    Attributes:
        identity: the hash of all inputs, channel and engine included.
        result: `running`, `done`, `failed` or `interrupted`; `reason` explains the last two.
        started: and `ended`: UTC, as ISO 8601; `seconds` is the time that the engine took.
        log: the log file's path below the ledger's folder.
        marks: notes: `channel` is the origin of its channels, if they have one (`ChannelProperties`), `tests` is
            `left out` if they were not run, with the reason under `tests-reason`, or names the emulator of a cross
            build; `libraries` has a line for each library that the package needs and no requirement brings, and for
            each other doubt.
        attempt: 1, or more for retries.
        machine: the name of the machine; `process` that of the run on it, as `pid:starttime`.
        cores: its number of cores; None if it was not built here.
        memory_limit: in bytes; None without one. `peak_memory` likewise, None if unknown.
        commit_id: the feedstock's git commit, with `+` if the tree differs from it; empty without git.
        inputs: part of the identity → its digest: `recipe`, `variant`, `files`, `sources`, `siblings`, `engine`,
            `channels`. Two builds differ in the parts whose digests differ.
        values: the row's variant.
        command: the command line.
        seen: the time of the run's last sign of life, like `started`; empty before the first.
        seal: made with the user's key (`ledger.seal`).
        brought: this user has not built it: its seal is missing, or another's.
        id: its number in the ledger; None before it is recorded.
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
    attempt: int = 1
    machine: str = ""
    process: str = ""
    cores: int | None = None
    memory_limit: int | None = None
    peak_memory: int | None = None
    commit_id: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    seen: str = ""
    seal: str = field(default="", compare=False, repr=False)
    packages: tuple[PackageRecord, ...] = ()
    brought: bool = False
    id: int | None = None

    TABLE: ClassVar[str] = "builds"
    RESULTS: ClassVar[tuple[str, ...]] = ("running", "done", "failed", "interrupted")

    @property
    def built_on(self) -> ChannelProperties:
        """The properties of the channels that it was built on."""
        return properties_of(self.marks.get("channel", ""))

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that its package needs and no requirement brings, and other doubts, each in a sentence."""
        return tuple(self.marks.get(LIBRARIES, "").splitlines())


@dataclass(frozen=True, slots=True)
class TestRecord:
    """A built package's own tests, run again, and the figures of its benchmark.

    Attributes:
        sha256: hash of the package, whose `channel` and `file` are as in `PackageRecord`.
        started: and `ended`: UTC, as ISO 8601; `seconds` is the duration of the tests.
        result: `passed` or `failed`; `reason` explains a failure.
        log: the log file's path below the ledger's folder.
        machine: its name; `gpu` and `driver` are empty on a machine without a GPU.
        benchmark: name → `{"value": 1.5, "unit": "s"}`.
        seal: and `brought`: as in `BuildRecord`.
    """

    sha256: str
    channel: str
    file: str
    started: str
    result: str
    log: str
    machine: str
    reason: str = ""
    ended: str | None = None
    seconds: float | None = None
    gpu: str = ""
    driver: str = ""
    benchmark: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    id: int | None = None
    seal: str = field(default="", compare=False, repr=False)
    brought: bool = False

    TABLE: ClassVar[str] = "tests"
    RESULTS: ClassVar[tuple[str, ...]] = ("passed", "failed")
    #: Otherwise pytest would collect a class of this name as tests.
    __test__: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """A second build of a package's output from the same inputs, compared with the package file by file.

    Attributes:
        sha256: hash of the package, whose `channel` and `file` are as in `PackageRecord`.
        started: and `ended`: of the second build, UTC, as ISO 8601; `seconds` is the time that the engine took.
        result: `same` (the same bytes), `repacked` (the same contents, compressed in another way), `different`, or
            `failed` if the second build made no package; `reason` explains that.
        log: of the second build, the file's path below the ledger's folder.
        machine: the name of the machine that built it.
        again: the hash of the second package, empty without one.
        files: the number of files in either package; `differences` is path → how it differs, for up to 1,000 files.
        seal: and `brought`: as in `BuildRecord`.
    """

    sha256: str
    channel: str
    file: str
    started: str
    result: str
    log: str
    machine: str
    reason: str = ""
    ended: str | None = None
    seconds: float | None = None
    again: str = ""
    files: int = 0
    differences: Mapping[str, str] = field(default_factory=dict)
    id: int | None = None
    seal: str = field(default="", compare=False, repr=False)
    brought: bool = False

    TABLE: ClassVar[str] = "comparisons"
    RESULTS: ClassVar[tuple[str, ...]] = ("same", "repacked", "different", "failed")


def moment_of(text: str) -> datetime | None:
    """The time in a record; None if it is invalid."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def now() -> str:
    """The time in the ledger's form."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


#: A record with a table of its own.
_Stored = TypeVar("_Stored", BuildRecord, TestRecord, ComparisonRecord)
_STORED: tuple[type[Any], ...] = (BuildRecord, TestRecord, ComparisonRecord)
_COLUMNS = {
    kind: tuple(each.name for each in fields(kind) if each.name not in ("packages", "brought", "id"))
    for kind in _STORED
}
#: The columns that hold JSON, by the beginning of the field's annotation.
_LISTS = {kind: {each.name for each in fields(kind) if str(each.type).startswith("tuple")} for kind in _STORED}
_OBJECTS = {kind: {each.name for each in fields(kind) if str(each.type).startswith("Mapping")} for kind in _STORED}
#: The stored fields of a package of an environment; `dataclasses.asdict` takes ten times as long.
_SOLVED = tuple(field.name for field in fields(SolvedPackage))


def columns_of(kind: type[BuildRecord | TestRecord | ComparisonRecord]) -> tuple[str, ...]:
    """The fields of a record that have a column of their own, in order."""
    return _COLUMNS[kind]


def told_of(record: TestRecord | ComparisonRecord) -> dict[str, Any]:
    """What a record tells others, by the names of its fields: all but its place in the ledger."""
    return {name: getattr(record, name) for name in _COLUMNS[type(record)] if name != "seal"}


def query_of(kind: type[BuildRecord | TestRecord | ComparisonRecord]) -> str:
    """The columns that make a record, its `id` last; some are keywords of SQL."""
    return ", ".join(f'"{column}"' for column in (*columns_of(kind), "id"))


def stored(record: BuildRecord | TestRecord | ComparisonRecord, column: str) -> Any:
    """A field as its column holds it."""
    value = getattr(record, column)
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    return json.dumps(value) if isinstance(value, tuple) else value


def build_of(row: Sequence[Any], packages: Iterable[Sequence[Any]]) -> BuildRecord:
    """A build from a row of `query_of`, and those of its packages without the `build`.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    return replace(record_of(BuildRecord, row), packages=packages_of(packages))


def packages_of(rows: Iterable[Sequence[Any]]) -> tuple[PackageRecord, ...]:
    """The packages of a build from their rows without the `build`, with the errors of `build_of`."""
    files = tuple(checked(PackageRecord(*row)) for row in rows)
    _refuse_leading_out(*(path for package in files for path in (package.channel, package.file)))
    return files


def record_of(kind: type[_Stored], row: Sequence[Any]) -> _Stored:
    """A record from a row of `query_of`; a build has no packages then.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    values = dict(zip((*_COLUMNS[kind], "id"), row, strict=True))
    for column in _OBJECTS[kind]:
        values[column] = json.loads(values[column])
    for column in _LISTS[kind] & values.keys():
        values[column] = tuple(json.loads(values[column]))
    if values["result"] not in kind.RESULTS:
        raise ValueError("it has an invalid 'result'")
    record = checked(kind(**values))
    _refuse_leading_out(record.log, *(() if isinstance(record, BuildRecord) else (record.channel, record.file)))
    return record


def environment_of(name: str, packages: str) -> EnvironmentRecord:
    """An environment from its row.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    return checked(EnvironmentRecord(name, tuple(checked(SolvedPackage(**each)) for each in json.loads(packages))))


def environment_json(record: EnvironmentRecord) -> str:
    """The packages of an environment as their column holds them."""
    return json.dumps([{name: getattr(package, name) for name in _SOLVED} for package in record.packages])


def parts(values: Iterable[T]) -> Iterator[tuple[list[T], str]]:
    """Values, each once, in parts that fit into one query, each with its marks: `?, ?, ?`."""
    once = iter(dict.fromkeys(values))
    while part := list(islice(once, _AT_ONCE)):
        yield part, ", ".join("?" * len(part))


def checked(record: _Record) -> _Record:
    """The record itself, if each of its fields is of its type.

    Raises:
        ValueError: a field has the wrong type, is NaN or beyond all sizes, or is a string with NUL bytes, which no path
            may have.
    """
    kind: Any = type(record)
    for name, fits in _checks(kind):
        if not fits(getattr(record, name)):
            raise ValueError(f"it has an invalid '{name}'")
    return record


def _refuse_leading_out(*paths: str) -> None:
    """Refuse paths that are not below the ledger's folder: packages are read, published and removed by them.

    Raises:
        ValueError: a path is absolute, or has `..` in it.
    """
    for path in paths:
        if path[:1] in ("/", "\\") or path[1:2] == ":" or ".." in path.replace("\\", "/").split("/"):
            raise ValueError(f"the path {path[:200]!r} leads out of its folder")


@cache
def _checks(kind: Any) -> tuple[tuple[str, _Check], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _check(hints[field.name])) for field in fields(kind))


def _check(hint: Any) -> _Check:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, of = get_origin(hint), [_check(each) for each in get_args(hint) if each is not ...]
    if origin in (Union, UnionType):
        return lambda value: any(fits(value) for fits in of)
    if origin is tuple:
        return lambda value: isinstance(value, tuple) and all(map(of[0], value))
    if origin is Mapping:
        return lambda value: isinstance(value, dict) and all(map(of[0], value)) and all(map(of[1], value.values()))
    kind = NoneType if hint is None else hint
    return lambda value: isinstance(value, kind)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _LONGEST and "\0" not in value


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_GREATEST <= value < _GREATEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


_PLAIN: Mapping[Any, _Check] = {
    str: _is_text,
    bool: lambda value: isinstance(value, bool),
    int: _is_whole,
    float: _is_number,
    Any: lambda _value: True,
}
