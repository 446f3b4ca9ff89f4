"""The state of a run: which rows wait, run and have ended. It knows neither threads nor clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from feedstock_tools.builds.plan.hosts import EngineNeeds, Host
from feedstock_tools.builds.plan.row import Place, Work, place_of
from feedstock_tools.builds.runs.building import BuiltRow
from feedstock_tools.builds.runs.decide import Pending, Start, Waiting, decide, pending_row
from feedstock_tools.builds.runs.occupancy import Occupancy, Running


class RunState:
    """The rows of one run, on this machine, in a fleet, or simulated.

    Attributes:
        results: those of the rows that have ended, by name.
    """

    def __init__(
        self, works: Sequence[Work], *, fail_fast: bool, engines: Mapping[str, EngineNeeds] | None = None
    ) -> None:
        """Let some rows wait, the most urgent first.

        Args:
            fail_fast: after a failure nothing begins any more.
            engines: configuration → what its engine asks of a host; without it, nothing.
        """
        self._works: Mapping[str, Work] = {work.name: work for work in works}
        self._fail_fast = fail_fast
        self._engines = engines or {}
        self._broken: set[Place] = set()
        self._pending = Waiting(map(self._waiting, works))
        self._occupancy = Occupancy()
        self.results: dict[str, BuiltRow] = {}

    @property
    def pending(self) -> list[Pending]:
        """The rows that wait, the most urgent first."""
        return list(self._pending)

    @property
    def running(self) -> Mapping[str, Running]:
        """The rows that are being built, by name."""
        return self._occupancy.rows

    def begin(self, hosts: Sequence[Host], now: float) -> list[Start]:
        """Start the rows that `decide` chooses now."""
        starts = decide(self._pending, self._occupancy, hosts, now)
        for start in starts:
            self.take_over(start)
        return starts

    def take_over(self, start: Start) -> None:
        """Note that a waiting row has begun, or is under way since an earlier run."""
        waiting = self._pending.remove(start.row)
        gpu = waiting.needs.gpu
        self._occupancy.add(Running(start.row, start.host, start.share, waiting.places, gpu=gpu))

    def is_over(self, now: float) -> bool:
        """Whether nothing runs and no waiting row can ever begin."""
        return not self.running and not any(waiting.not_before > now for waiting in self._pending)

    def made(self, row: str, output: str) -> frozenset[Place]:
        """Note that a running row has made an output, so that no other row waits for it; returns its places."""
        places = self._places(row, output)
        running = self._occupancy.remove(row)
        self._occupancy.add(replace(running, places=running.places - places))
        return places

    def postpone(self, row: str, not_before: float) -> None:
        """Put a row back in front, because another run builds a part of it, or its host is gone."""
        self._occupancy.remove(row)
        first = self._waiting(self._works[row], not_before)
        self._pending = Waiting([first, *self._pending])
        self._give_up_broken()

    def end(self, row: str, built: BuiltRow) -> None:
        """Note that a row has ended; rows that need an output that failed do not begin."""
        self._occupancy.remove(row)
        self.results[row] = built
        if not built.failed:
            return
        self._broken |= self._places(row, built.failed.output)
        if self._fail_fast:
            self._pending = Waiting()
        self._give_up_broken()

    @property
    def failed(self) -> int:
        """The number of failed rows."""
        return sum(built.failed is not None for built in self.results.values())

    def _places(self, row: str, output: str) -> frozenset[Place]:
        return frozenset(place_of(missing) for missing in self._works[row].missing if missing.name == output)

    def _waiting(self, work: Work, not_before: float = 0.0) -> Pending:
        return pending_row(work, not_before=not_before, engine=self._engines.get(work.configuration))

    def _give_up_broken(self) -> None:
        """Let no row wait for an output that failed."""
        if self._broken:
            self._pending = Waiting(row for row in self._pending if row.places.isdisjoint(self._broken))
