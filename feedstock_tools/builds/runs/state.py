"""The state of a run: which rows wait, run and have ended. It knows neither threads nor clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from feedstock_tools.builds.plan.work import Place, Work, place_of
from feedstock_tools.builds.runs.decide import Host, Pending, Running, Start, decide
from feedstock_tools.builds.runs.row import BuiltRow

__all__ = ["RunState"]


class RunState:
    """The rows of one run.

    Attributes:
        pending: the rows that wait, the most urgent first.
        running: the rows that are being built, by name; `results` are those of rows that have ended.
    """

    def __init__(self, works: Sequence[Work], *, fail_fast: bool) -> None:
        self._works: Mapping[str, Work] = {work.name: work for work in works}
        self._fail_fast = fail_fast
        self._broken: set[Place] = set()
        self.pending = [Pending(work.name, work.needs, work.places) for work in works]
        self.running: dict[str, Running] = {}
        self.results: dict[str, BuiltRow] = {}

    def begin(self, hosts: Sequence[Host], now: float) -> list[Start]:
        """Start the rows that `decide` chooses now."""
        starts = decide(self.pending, list(self.running.values()), hosts, now)
        for start in starts:
            self.pending = [waiting for waiting in self.pending if waiting.row != start.row]
            self.running[start.row] = Running(start.row, start.host, start.share, self._works[start.row].places)
        return starts

    def is_over(self, now: float) -> bool:
        """Whether nothing runs and no waiting row can ever begin."""
        return not self.running and not any(waiting.not_before > now for waiting in self.pending)

    def made(self, row: str, output: str) -> frozenset[Place]:
        """Note that a running row has made an output, so that no other row waits for it; returns its places."""
        places = self._places(row, output)
        running = self.running[row]
        self.running[row] = replace(running, places=running.places - places)
        return places

    def postpone(self, row: str, not_before: float) -> None:
        """Put a row back, because another run builds a part of it."""
        del self.running[row]
        work = self._works[row]
        self._wait_for([Pending(row, work.needs, work.places, not_before), *self.pending])

    def end(self, row: str, built: BuiltRow) -> None:
        """Note that a row has ended; rows that need an output that failed do not begin."""
        del self.running[row]
        self.results[row] = built
        if built.failed:
            self._broken |= self._places(row, built.failed.output)
        self._wait_for([] if built.failed and self._fail_fast else self.pending)

    @property
    def failed(self) -> int:
        """The number of failed rows."""
        return sum(built.failed is not None for built in self.results.values())

    def _places(self, row: str, output: str) -> frozenset[Place]:
        return frozenset(place_of(missing) for missing in self._works[row].missing if missing.name == output)

    def _wait_for(self, pending: Sequence[Pending]) -> None:
        self.pending = [waiting for waiting in pending if not waiting.places & self._broken]
