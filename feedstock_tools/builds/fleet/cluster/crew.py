"""The crew of a run over a fleet that may get more hosts: jobs are submitted for the rows that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from feedstock_tools.builds.fleet.cluster.pool import Pool
from feedstock_tools.builds.plan.hosts import EngineNeeds, Host
from feedstock_tools.builds.plan.row import Work
from feedstock_tools.builds.runs.building import BuiltRow
from feedstock_tools.builds.runs.crew import Crew, Watch
from feedstock_tools.builds.runs.decide import Start, pending_row
from feedstock_tools.builds.runs.occupancy import Running
from feedstock_tools.builds.runs.row_build import Attempt


class JobCrew:
    """Builds rows on the hosts of another crew, and lets a pool submit jobs that become such hosts; see `Crew`."""

    outlives_run = True

    def __init__(self, crew: Crew, pool: Pool, works: Sequence[Work], engines: Mapping[str, EngineNeeds]) -> None:
        """Add a pool to a crew.

        Args:
            works: the rows of the run, in its order.
            engines: configuration → what its engine asks of a host.
        """
        self._crew = crew
        self._pool = pool
        self._rows = {work.name: pending_row(work, engine=engines.get(work.configuration)) for work in works}
        self._running: dict[str, Running] = {}

    def hosts(self) -> Sequence[Host]:
        """See `Crew`."""
        return self._crew.hosts()

    def returned(self, waiting: Collection[str]) -> Sequence[Start]:
        """See `Crew`."""
        names = set(waiting)
        self._pool.note([row for name, row in self._rows.items() if name in names], list(self._running.values()))
        return self._crew.returned(waiting)

    def is_waiting(self) -> bool:
        """See `Crew`."""
        return self._crew.is_waiting() or self._pool.may_come()

    def signs(self) -> Iterable[tuple[str, str]]:
        """See `Crew`."""
        return self._crew.signs()

    def build(self, work: Work, host: str, attempt: Attempt, watch: Watch) -> BuiltRow | None:
        """See `Crew`."""
        row = self._rows[work.name]
        self._running[work.name] = Running(work.name, host, attempt.share, row.places, gpu=row.needs.gpu)
        try:
            return self._crew.build(work, host, attempt, watch)
        finally:
            del self._running[work.name]
