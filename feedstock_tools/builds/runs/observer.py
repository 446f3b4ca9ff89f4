"""Who watches a run: a protocol, so that the run knows nothing of terminals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from feedstock_tools.builds.engines.contract import Event
from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.runs.retries import Again
from feedstock_tools.builds.runs.row import BuiltRow

__all__ = ["Observer", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: rows by how they ended or that they wait, and those that are built now with their times so far.

    Attributes:
        elsewhere: the rows that wait for another run, which builds something of theirs.
        left: seconds that the rest takes by the times that are known; None where none is.
    """

    done: int
    failed: int
    waiting: int
    running: Mapping[str, float]
    elsewhere: tuple[str, ...] = ()
    left: float | None = None


class Observer(Protocol):
    """Someone who watches a run; all of it is called from the thread that the run was called from."""

    def begin(self, work: Work) -> None:
        """A row is about to be built."""

    def event(self, work: Work, event: Event | Again) -> None:
        """Something an engine reports, or another attempt at the row."""

    def end(self, work: Work, built: BuiltRow) -> None:
        """A row has ended, as far as it came."""

    def progress(self, progress: Progress) -> None:
        """Some times a second while rows are built."""

    def ending(self, builds: int) -> None:
        """The run is cut short, and so many builds that run are ended."""
