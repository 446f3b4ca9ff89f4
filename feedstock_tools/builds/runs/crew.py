"""Who builds the rows of a run: this machine, or the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from feedstock_tools.builds.engines.contract import Event
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Work
from feedstock_tools.builds.runs.building import BuiltRow, build_row
from feedstock_tools.builds.runs.decide import Start
from feedstock_tools.builds.runs.retries import NextAttempt
from feedstock_tools.builds.runs.row_build import Attempt
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.processes import this_machine, this_process

Watch = Callable[[Event | NextAttempt], None]


class Elsewhere(Exception):  # noqa: N818 - an event of a run
    """The host of a row is gone, or cannot be used any more; the row begins again on another one."""


class Crew(Protocol):
    """Builds rows on one or more hosts."""

    @property
    def outlives_run(self) -> bool:
        """Whether builds go on after the run has ended."""
        ...

    def hosts(self) -> Sequence[Host]:
        """The hosts that rows can begin on now, with the resources that other runs leave."""
        ...

    def returned(self, waiting: Collection[str]) -> Sequence[Start]:
        """The attempts of earlier runs, and of hosts that were away, at rows that wait here: to be taken over."""
        ...

    def is_waiting(self) -> bool:
        """Whether hosts may appear that rows could begin on, so that the run is not over yet."""
        ...

    def signs(self) -> Iterable[tuple[str, str]]:
        """The machine and the process of each build that goes on, as its record in the ledger names them."""
        ...

    def build(self, work: Work, host: str, attempt: Attempt, watch: Watch) -> BuiltRow | None:
        """Build a row on a host; see `build_row`.

        Raises:
            Elsewhere: it must begin again.
        """
        ...


class ThisMachine:
    """The crew of a run without a fleet."""

    outlives_run = False

    def __init__(self, host: Host, places: Mapping[str, tuple[Site, Station]]) -> None:
        """Prepare it.

        Args:
            places: configuration → what its builds share, and what this machine opened for them.
        """
        self._host = host
        self._places = places

    def hosts(self) -> Sequence[Host]:
        """See `Crew`."""
        return (self._host,)

    def returned(self, waiting: Collection[str]) -> Sequence[Start]:
        """See `Crew`."""
        return ()

    def is_waiting(self) -> bool:
        """See `Crew`."""
        return False

    def signs(self) -> Iterable[tuple[str, str]]:
        """See `Crew`."""
        return ((this_machine(), this_process()),)

    def build(self, work: Work, host: str, attempt: Attempt, watch: Watch) -> BuiltRow | None:
        """See `Crew`."""
        return build_row(*self._places[work.configuration], work, attempt, watch)
