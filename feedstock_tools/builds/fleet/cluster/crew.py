"""The crew of a run over a fleet that may get more hosts: jobs are submitted for the rows that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from feedstock_tools.builds.fleet.cluster.pool import Pool
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.crew import Crew, Watch


class JobCrew:
    """Builds rows on the hosts of another crew, and lets a pool submit jobs that become such hosts; see `Crew`."""

    places_rows = True

    def __init__(self, crew: Crew, pool: Pool, rows: Sequence[Row]) -> None:
        """Add a pool to a crew.

        Args:
            rows: those of the run, in its order.
        """
        self._crew = crew
        self._pool = pool
        self._rows = {row.name: row for row in rows}
        self._running: dict[str, Row] = {}

    def hosts(self) -> Sequence[Host]:
        """See `Crew`."""
        return self._crew.hosts()

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
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

    def build(self, row: Row, stop: int, watch: Watch) -> Ended | None:
        """See `Crew`."""
        self._running[row.name] = row
        try:
            return self._crew.build(row, stop, watch)
        finally:
            del self._running[row.name]
