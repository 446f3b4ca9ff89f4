"""The observer of a run: a protocol, so that the run does not depend on terminals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Event
    from feedstock_tools.builds.plan.hosts import Host
    from feedstock_tools.builds.plan.work import Work
    from feedstock_tools.builds.runs.retries import NextAttempt
    from feedstock_tools.builds.runs.row import BuiltRow


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: numbers of finished and waiting rows, and the rows under way with their elapsed times.

    Attributes:
        elsewhere: the rows that wait for another run, which builds one of their outputs.
        left: the remaining seconds by known times; None if there are none.
        hosts: those that rows can begin on now; `on` is row under way → the name of its host.
    """

    done: int
    failed: int
    waiting: int
    running: Mapping[str, float]
    elsewhere: tuple[str, ...] = ()
    left: float | None = None
    hosts: tuple[Host, ...] = ()
    on: Mapping[str, str] = field(default_factory=dict)


class Observer(Protocol):
    """An observer of a run; all methods are called from the thread that called the run."""

    def begin(self, work: Work) -> None:
        """A row is about to be built."""

    def event(self, work: Work, event: Event | NextAttempt) -> None:
        """Something an engine reports, or another attempt at the row."""

    def end(self, work: Work, built: BuiltRow) -> None:
        """A row has ended, completely or not."""

    def progress(self, progress: Progress) -> None:
        """Called several times a second while rows are built."""

    def ending(self, builds: int, *, go_on: bool) -> None:
        """The run is cut short, and this number of running builds is ended, or goes on without it."""


class Observers:
    """Several observers of a run as one; each hears of everything, in this order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def begin(self, work: Work) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.begin(work)

    def event(self, work: Work, event: Event | NextAttempt) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.event(work, event)

    def end(self, work: Work, built: BuiltRow) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.end(work, built)

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.progress(progress)

    def ending(self, builds: int, *, go_on: bool) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.ending(builds, go_on=go_on)
