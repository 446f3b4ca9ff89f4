"""The observer of a run, a protocol so that the run does not depend on terminals; and what it sees of a flood."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from feedstock_tools.builds.engines.contract import Event, Log, Output
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.wording import size_text

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Event
    from feedstock_tools.builds.plan.hosts import Host
    from feedstock_tools.builds.plan.row import Row


#: The output of a row that is shown at once, and its growth per second, in bytes: more than a terminal shows.
_AT_ONCE = 4 << 20
_PER_SECOND = 1 << 20
_LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: numbers of finished and waiting rows, and the rows under way with their elapsed times.

    Attributes:
        elsewhere: the titles of the rows that wait for another run, which builds one of their outputs.
        left: the remaining seconds by known times; None if there are none.
        hosts: those that rows can begin on now; `on` is row under way → the name of its host.
        dashboard: the port of Dask's dashboard on the machine of its scheduler; None without one.
    """

    done: int
    failed: int
    waiting: int
    running: Mapping[str, float]
    elsewhere: tuple[str, ...] = ()
    left: float | None = None
    hosts: tuple[Host, ...] = ()
    on: Mapping[str, str] = field(default_factory=dict)
    dashboard: int | None = None


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The event that another attempt follows: its number, the reason, and the number of jobs if lower than before."""

    attempt: int
    because: str
    jobs: int | None = None


class Observer(Protocol):
    """An observer of a run; all methods are called from the thread that called the run."""

    def begin(self, row: Row) -> None:
        """A row is about to be built."""

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        """Something an engine reports, or another attempt at the row."""

    def end(self, row: Row) -> None:
        """A row has ended, completely or not."""

    def progress(self, progress: Progress) -> None:
        """Called several times a second while rows are built."""

    def ending(self, builds: int, *, go_on: bool) -> None:
        """The run is cut short, and this number of running builds is ended, or goes on without it."""


class Observers:
    """Several observers of a run as one; each hears of everything, in this order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def begin(self, row: Row) -> None:
        for observer in self._observers:
            observer.begin(row)

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        for observer in self._observers:
            observer.event(row, event)

    def end(self, row: Row) -> None:
        for observer in self._observers:
            observer.end(row)

    def progress(self, progress: Progress) -> None:
        for observer in self._observers:
            observer.progress(progress)

    def ending(self, builds: int, *, go_on: bool) -> None:
        for observer in self._observers:
            observer.ending(builds, go_on=go_on)


class Throttle:
    """What an observer sees of a row: all of it, unless its programs print far more than people read.

    The log file has everything. A slow terminal delays no build, and what waits for it does not fill the memory.
    """

    def __init__(self) -> None:
        self._allowed = float(_AT_ONCE)
        self._since = time.monotonic()
        self._left_out = 0
        self._last = LastLines(_LAST_LINES)

    def of(self, event: Event | NextAttempt, *, full: bool) -> Iterator[Event | NextAttempt]:
        """The events to show when another one comes; no output of programs while too much of it waits."""
        now = time.monotonic()
        self._allowed = min(_AT_ONCE, self._allowed + _PER_SECOND * (now - self._since))
        self._since = now
        if isinstance(event, Output):
            if full or len(event.content) > self._allowed:
                self._left_out += len(event.content)
                self._last.add(event.content)
                return
            self._allowed -= len(event.content)
        if self._left_out:
            size, self._left_out = size_text(self._left_out), 0
            yield Log(f"-- {size} of output are in the log file only; the last lines:", "feedstock-tools")
            yield Output("".join(f"{line}\n" for line in self._last).encode())
        yield event
