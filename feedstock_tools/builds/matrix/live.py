"""The runs that go on: what each run of a command writes about itself, for those who watch it from another process.

The ledger has what begins and ends. This has the rest, for as long as the run lives: its hosts, what each row does,
what waits, and how long it takes by known times. It is a cache: a run that cannot write it goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from feedstock_tools.builds.engines.contract import Started
from feedstock_tools.builds.ledger.records import checked, moment_of, now
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.processes import process_lives, this_machine, this_process

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Event
    from feedstock_tools.builds.plan.row import Row
    from feedstock_tools.builds.runs.observer import NextAttempt, Progress

_FOLDER = "runs"
#: How often a run writes, in seconds.
_EVERY = 1.0
#: A run on another machine that has not written for so long counts as dead.
_SILENT = timedelta(minutes=2)
#: The number of rows and hosts that a reader takes from a run, and of runs.
_MOST, _MOST_RUNS = 10_000, 50


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row that a run builds: where, for how long (seconds), and the output that was begun last."""

    row: str
    configuration: str
    host: str
    seconds: float
    output: str


@dataclass(frozen=True, slots=True)
class LiveHost:
    """A host of a run: its cores, its memory in bytes, and how many rows it builds at a time.

    `present`: rows can begin on it now.
    """

    name: str
    cores: int
    memory: int
    jobs: int
    present: bool


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run as it last wrote of itself.

    Attributes:
        process: and `machine`: as in a `BuildRecord`.
        began: and `at`: when it began and wrote this; UTC, as ISO 8601.
        done: the number of rows that are done; `failed` and `waiting` likewise.
        left: the seconds that the rest takes by known times; None without any.
        dashboard: see `Progress`.
    """

    process: str
    machine: str
    command: str
    began: str
    at: str
    done: int
    failed: int
    waiting: int
    left: float | None
    rows: tuple[LiveRow, ...]
    hosts: tuple[LiveHost, ...]
    dashboard: int | None

    @property
    def remaining(self) -> float | None:
        """The seconds that the rest takes: by known times, else as the rows so far; None while there is neither."""
        began, at = moment_of(self.began), moment_of(self.at)
        ended = self.done + self.failed
        if self.left is not None or began is None or at is None or not ended:
            return self.left
        return max(0.0, (at - began).total_seconds()) / ended * (self.waiting + len(self.rows))

    @property
    def ends(self) -> str | None:
        """When it ends by that; UTC, as ISO 8601."""
        at, remaining = moment_of(self.at), self.remaining
        if at is None or remaining is None:
            return None
        try:
            return (at + timedelta(seconds=remaining)).isoformat(timespec="seconds")
        except OverflowError:
            return None


_Live = TypeVar("_Live", LiveRow, LiveHost, LiveRun)


@contextmanager
def recorded(artifacts: Artifacts, command: str) -> Iterator[RunRecorder]:
    """An observer that writes about a run until the end of the block.

    Args:
        command: the command line.
    """
    for path in _files(artifacts):
        run = _run_of(artifacts, path.stem)
        if run is None or process_lives(run.process, run.machine) is False:
            _remove(path)
    recorder = RunRecorder(artifacts, command)
    try:
        yield recorder
    finally:
        _remove(recorder.path)


class RunRecorder:
    """An `Observer` that writes what a run does into the cache of its artifacts folder."""

    def __init__(self, artifacts: Artifacts, command: str) -> None:
        self._artifacts = artifacts
        self._command = command
        self._began = now()
        self._name = f"{_FOLDER}/{os.getpid()}"
        self._configurations: dict[str, str] = {}
        self._outputs: dict[str, str] = {}
        self._hosts: dict[str, LiveHost] = {}
        self._next = 0.0

    @property
    def path(self) -> Path:
        return self._artifacts.cache / f"{self._name}.json"

    def begin(self, row: Row) -> None:
        self._configurations[row.name] = row.configuration

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, Started):
            self._outputs[row.name] = event.output

    def end(self, row: Row) -> None: ...

    def progress(self, progress: Progress) -> None:
        """Write it, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        self._artifacts.remember(self._name, asdict(self._run(progress)))

    def ending(self, builds: int, *, go_on: bool) -> None: ...

    def _run(self, progress: Progress) -> LiveRun:
        present = {
            host.name: LiveHost(host.name, len(host.capacity.cores), host.capacity.memory, host.jobs, present=True)
            for host in progress.hosts
        }
        away = {name: LiveHost(name, 0, 0, 0, present=False) for name in progress.on.values()}
        gone = {
            name: LiveHost(name, host.cores, host.memory, host.jobs, present=False)
            for name, host in self._hosts.items()
        }
        self._hosts = {**away, **gone, **present}
        rows = tuple(
            LiveRow(
                name,
                self._configurations.get(name, ""),
                progress.on.get(name, ""),
                seconds,
                self._outputs.get(name, ""),
            )
            for name, seconds in progress.running.items()
        )
        return LiveRun(
            process=this_process(),
            machine=this_machine(),
            command=self._command,
            began=self._began,
            at=now(),
            done=progress.done,
            failed=progress.failed,
            waiting=progress.waiting,
            left=progress.left,
            rows=rows,
            hosts=tuple(self._hosts[name] for name in sorted(self._hosts)),
            dashboard=progress.dashboard,
        )


def read_runs(artifacts: Artifacts) -> tuple[LiveRun, ...]:
    """The runs that go on in a folder of artifacts, the oldest first; nothing that is damaged."""
    found = (_run_of(artifacts, path.stem) for path in _files(artifacts)[:_MOST_RUNS])
    return tuple(sorted((run for run in found if run is not None and _lives(run)), key=lambda run: run.began))


def _lives(run: LiveRun) -> bool:
    lives = process_lives(run.process, run.machine)
    if lives is not None:
        return lives
    at = moment_of(run.at)
    return at is not None and datetime.now(UTC) - at < _SILENT


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _files(artifacts: Artifacts) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in (artifacts.cache / _FOLDER).glob("*.json") if path.stem.isdecimal())
    return []


def _run_of(artifacts: Artifacts, name: str) -> LiveRun | None:
    """What a run wrote; None if it is damaged."""
    content = artifacts.recall(f"{_FOLDER}/{name}")
    try:
        rows = tuple(_sound(LiveRow(**each)) for each in content["rows"][:_MOST])
        hosts = tuple(_sound(LiveHost(**each)) for each in content["hosts"][:_MOST])
        return _sound(LiveRun(**{**content, "rows": rows, "hosts": hosts}))
    except (LookupError, TypeError, ValueError):
        return None


def _sound(value: _Live) -> _Live:
    """The value itself, if each field is of its type and each number is one that a date and a size can hold.

    Raises:
        ValueError: one is not.
    """
    for each in fields(checked(value)):
        number = getattr(value, each.name)
        if isinstance(number, int | float) and not 0 <= number < 1 << 50:
            raise ValueError(f"{each.name} is out of bounds")
    return value
