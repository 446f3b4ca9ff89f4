"""The records of the ledger: builds, their packages, the environments they were made in, tests of packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar


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
        marks: notes: `channel` is `stand-in` for a build on the stand-in channel, `tests` is
            `left out` if they were not run, with the reason under `tests-reason`, or names the emulator of a cross
            build.
        attempt: 1, or more for retries.
        machine: the name of the machine; `process` that of the run on it, as `pid:starttime`.
        cores: its number of cores; None in earlier forms of the ledger.
        memory_limit: in bytes; None without one. `peak_memory` likewise, None if unknown.
        commit_id: the feedstock's git commit, with `+` if the tree differs from it; empty without git.
        inputs: part of the identity → its digest: `recipe`, `variant`, `files`, `sources`, `siblings`, `engine`,
            `channels`. Two builds differ in the parts whose digests differ.
        values: the row's variant.
        command: the command line.
        seen: the time of the run's last sign of life, like `started`; empty in earlier forms of the ledger.
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
    packages: tuple[PackageRecord, ...] = ()
    id: int | None = None

    #: The fields with a column of their own, in order; those stored as JSON.
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("identity", "configuration", "row", "output", "result", "started", "log", "engine", "channels", "marks"),
        *("reason", "ended", "seconds", "attempt", "machine", "process", "cores", "memory_limit", "peak_memory"),
        *("commit_id", "inputs", "values", "command", "seen"),
    )
    JSON: ClassVar[frozenset[str]] = frozenset({"channels", "marks", "inputs", "values"})
    RESULTS: ClassVar[tuple[str, ...]] = ("running", "done", "failed", "interrupted")


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

    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("sha256", "channel", "file", "started", "result", "log", "machine", "reason", "ended", "seconds"),
        *("gpu", "driver", "benchmark"),
    )
    JSON: ClassVar[frozenset[str]] = frozenset({"benchmark"})
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

    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("sha256", "channel", "file", "started", "result", "log", "machine", "reason", "ended", "seconds"),
        *("again", "files", "differences"),
    )
    JSON: ClassVar[frozenset[str]] = frozenset({"differences"})
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
