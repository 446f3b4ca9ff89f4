"""Which rows begin next, on which host, with which resources: a pure function over values.

The run on this machine calls it with one host. It does not depend on threads, processes or transport.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feedstock_tools.builds.plan.capacity import Capacity, Share, jobs_of
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.work import Place

__all__ = ["Host", "Pending", "Running", "Start", "decide", "fits"]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that builds: the limit for all its builds together, and its maximum number of parallel rows.

    `gpu`: rows that need a GPU may be built there.
    """

    name: str
    capacity: Capacity
    jobs: int
    gpu: bool = True


@dataclass(frozen=True, slots=True)
class Pending:
    """A waiting row: the places of its missing outputs, and the earliest time for it to begin."""

    row: str
    needs: Needs
    places: frozenset[Place]
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Running:
    """A row under way: its host, its share, and the places of the outputs that it has not made yet."""

    row: str
    host: str
    share: Share
    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Start:
    """A row that begins now, its host, and its share."""

    row: str
    host: str
    share: Share


def decide(pending: Sequence[Pending], running: Sequence[Running], hosts: Sequence[Host], now: float) -> list[Start]:
    """The rows that begin now.

    A row begins if no other row makes one of its outputs, and a host has cores, memory and a place for it. The first
    row without such a host reserves every host that it fits: otherwise smaller rows would keep it waiting for ever. A
    row that fits no host delays no other.

    Args:
        pending: the waiting rows, the most urgent first.
        now: the time, on the clock of `not_before`.
    """
    free = {host.name: _free(host, running) for host in hosts}
    busy = {place for row in running for place in row.places}
    kept: set[str] = set()
    starts: list[Start] = []
    for row in pending:
        if row.not_before > now or row.places & busy:
            continue
        fitting = [host for host in hosts if host.name not in kept and fits(row.needs, host)]
        host = _best(row.needs, fitting, free)
        if host is None:
            kept |= {host.name for host in fitting}
            continue
        share, free[host.name] = _taken(row.needs, free[host.name])
        starts.append(Start(row.row, host.name, share))
        busy |= row.places
    return starts


def fits(needs: Needs, host: Host) -> bool:
    """Whether an idle host has the resources for a row."""
    return (
        host.jobs > 0
        and needs.cores <= len(host.capacity.cores)
        and needs.memory <= host.capacity.memory
        and (host.gpu or not needs.gpu)
    )


@dataclass(frozen=True, slots=True)
class _Free:
    """The free resources of a host."""

    cores: tuple[int, ...]
    memory: int
    jobs: int


def _free(host: Host, running: Sequence[Running]) -> _Free:
    shares = [row.share for row in running if row.host == host.name]
    taken = {core for share in shares for core in share.cores}
    cores = tuple(core for core in host.capacity.cores if core not in taken)
    return _Free(cores, host.capacity.memory - sum(share.memory for share in shares), host.jobs - len(shares))


def _best(needs: Needs, hosts: Sequence[Host], free: dict[str, _Free]) -> Host | None:
    """The host with the most free cores among those that can begin the row now; the first in a tie."""
    able = [
        host
        for host in hosts
        if (left := free[host.name]).jobs > 0 and len(left.cores) >= needs.cores and left.memory >= needs.memory
    ]
    return max(able, key=lambda host: len(free[host.name].cores), default=None)


def _taken(needs: Needs, free: _Free) -> tuple[Share, _Free]:
    cores, rest = free.cores[: needs.cores], free.cores[needs.cores :]
    share = Share(cores, needs.memory, jobs_of(needs.cores, needs.memory, needs.memory_per_job))
    return share, _Free(rest, free.memory - needs.memory, free.jobs - 1)
