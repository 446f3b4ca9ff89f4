"""Who builds the rows of a run: this machine, or the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from feedstock_tools.builds.engines.contract import Event
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.building import build_row
from feedstock_tools.builds.runs.observer import NextAttempt
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.processes import this_machine, this_process

Watch = Callable[[Event | NextAttempt], None]


class Elsewhere(Exception):  # noqa: N818 - an event of a run
    """The host of a row is gone, or cannot be used any more; the row begins again on another one."""


class Crew(Protocol):
    """Builds rows on one or more hosts."""

    @property
    def places_rows(self) -> bool:
        """Whether it begins rows itself, on hosts of its choice, and goes on with them after the run has ended."""
        ...

    @property
    def dashboard(self) -> int | None:
        """The port of Dask's dashboard; see `Progress`."""
        ...

    def present_hosts(self) -> Sequence[Host]:
        """The hosts that are there, with all that each has for builds, whatever is reserved or in use now."""
        ...

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        """The waiting rows that are under way: those that it has begun, in this run or before."""
        ...

    def lost(self, heirs: Sequence[Row]) -> Sequence[Row]:
        """The shared builds that must run again, since no host keeps them any more for some waiting rows."""
        ...

    def is_waiting(self) -> bool:
        """Whether hosts may appear that rows could begin on, so that the run is not over yet."""
        ...

    def signs(self) -> Iterable[tuple[str, str]]:
        """The machine and the process of each build that goes on, as its record in the ledger names them."""
        ...

    def build(self, row: Row, stop: int, watch: Watch) -> Ended | None:
        """Build a row on its host; see `build_row`.

        Raises:
            Elsewhere: it must begin again.
        """
        ...


class ThisMachine:
    """The crew of a run without a fleet."""

    places_rows = False
    dashboard = None

    def __init__(self, host: Host, sites: Mapping[str, tuple[Site, Station]]) -> None:
        """Prepare it.

        Args:
            sites: configuration → what its builds share, and what this machine opened for them.
        """
        self._host = host
        self._sites = sites

    def present_hosts(self) -> Sequence[Host]:
        return (self._host,)

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        return ()

    def lost(self, heirs: Sequence[Row]) -> Sequence[Row]:
        return ()

    def is_waiting(self) -> bool:
        return False

    def signs(self) -> Iterable[tuple[str, str]]:
        return ((this_machine(), this_process()),)

    def build(self, row: Row, stop: int, watch: Watch) -> Ended | None:
        return build_row(*self._sites[row.configuration], row, stop, watch)
