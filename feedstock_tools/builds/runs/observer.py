"""Who is told what happens in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from feedstock_tools.builds.engines.contract import Event
from feedstock_tools.builds.plan.needs import Work
from feedstock_tools.builds.runs.row import BuiltRow

__all__ = ["Console", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: rows by how they ended or that they wait, and those that are built now with their times so far.

    `elsewhere` are the rows that wait for another run, which builds something of theirs.
    """

    done: int
    failed: int
    waiting: int
    running: Mapping[str, float]
    elsewhere: tuple[str, ...] = ()


class Console(Protocol):
    """Someone who is told what happens."""

    def say(self, text: str) -> None:
        """Something the user should know, on lines of its own."""

    def begin(self, work: Work) -> None:
        """A row is about to be built."""

    def event(self, work: Work, event: Event) -> None:
        """Something an engine reports."""

    def end(self, work: Work, built: BuiltRow) -> None:
        """A row has ended, as far as it came."""

    def progress(self, progress: Progress) -> None:
        """Some times a second while rows are built."""
