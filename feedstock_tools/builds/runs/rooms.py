"""The free resources of hosts: what the rows under way leave, and which host suits a row best."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import attrgetter
from typing import NamedTuple

from feedstock_tools.builds.plan.capacity import Share, jobs_of
from feedstock_tools.builds.plan.hosts import Demand, Host, Portion, portion_on
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.work import Place

__all__ = ["Choice", "Kind", "Occupancy", "Room", "Running", "Taken", "kinds_with_room"]


@dataclass(frozen=True, slots=True)
class Running:
    """A row under way: its host, its share, and the places of the outputs that it has not made yet.

    `gpu`: it has a GPU of its host.
    """

    row: str
    host: str
    share: Share
    places: frozenset[Place]
    gpu: bool = False


class Occupancy(Collection[Running]):
    """The rows under way, by host, and the places of what they make: kept up to date as rows begin and end."""

    def __init__(self, rows: Iterable[Running] = ()) -> None:
        self.rows: dict[str, Running] = {}
        self.places: set[Place] = set()
        self._on: dict[str, dict[str, Running]] = {}
        self._taken: dict[str, Taken] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Running) -> None:
        """Note that a row has begun."""
        self.rows[row.row] = row
        self.places |= row.places
        self._on.setdefault(row.host, {})[row.row] = row
        self._taken[row.host] = self.taken(row.host).after(row, 1)

    def remove(self, row: str) -> Running:
        """Note that a row is no longer under way; returns it."""
        gone = self.rows.pop(row)
        self.places -= gone.places
        del self._on[gone.host][row]
        self._taken[gone.host] = self.taken(gone.host).after(gone, -1)
        return gone

    def taken(self, host: str) -> Taken:
        """What the rows on a host have taken of it."""
        return self._taken.get(host, _NOTHING)

    def cores(self, host: str) -> set[int]:
        """The numbers of the cores that they have."""
        return {core for row in self._on.get(host, {}).values() for core in row.share.cores}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Running]:
        return iter(self.rows.values())

    def __contains__(self, row: object) -> bool:
        return isinstance(row, Running) and self.rows.get(row.row) == row


class Taken(NamedTuple):
    """The sum of what rows have taken of a host."""

    rows: int = 0
    cores: int = 0
    memory: int = 0
    gpus: int = 0

    def after(self, row: Running, sign: int) -> Taken:
        """The sum with a row more, or less."""
        share = row.share
        return Taken(
            self.rows + sign,
            self.cores + sign * len(share.cores),
            self.memory + sign * share.memory,
            self.gpus + sign * row.gpu,
        )


_NOTHING = Taken()


class Room:
    """The free resources of a host while rows are given to it; `at` is its place among the hosts."""

    __slots__ = ("_begun", "at", "cores", "gpus", "host", "jobs", "kind", "memory", "rank")

    def __init__(self, at: int, kind: Kind, host: Host, taken: Taken) -> None:
        self.at = at
        self.kind = kind
        self.host = host
        self.cores = len(host.capacity.cores) - taken.cores
        self.memory = host.capacity.memory - taken.memory
        self.jobs = host.jobs - taken.rows
        self.gpus = math.inf if host.gpus is None else host.gpus - taken.gpus
        self.rank = -self.cores, at
        self._begun: set[int] = set()

    @property
    def is_open(self) -> bool:
        """Whether any row could begin here."""
        return self.jobs > 0 and self.cores > 0 and self.memory > 0

    def take(self, needs: Needs, portion: Portion, occupancy: Occupancy) -> Share:
        """The share of a row that begins here."""
        taken = self._begun | occupancy.cores(self.host.name)
        cores = tuple(islice((core for core in self.host.capacity.cores if core not in taken), portion.cores))
        self._begun.update(cores)
        self.cores -= portion.cores
        self.memory -= portion.memory
        self.jobs -= 1
        self.gpus -= needs.gpu
        self.kind.move(self)
        return Share(cores, portion.memory, jobs_of(portion.cores, portion.memory, needs.memory_per_job))


class Kind:
    """The rooms of equal hosts, those with the most free cores first."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.rooms: list[Room] = []

    def move(self, room: Room) -> None:
        """Put a room, which has become smaller, into its new place in the order; out of it if it is closed."""
        self.rooms.remove(room)
        room.rank = -room.cores, room.at
        if room.is_open:
            insort(self.rooms, room, key=_RANK)

    def best(self, portion: Portion, *, gpu: bool) -> Room | None:
        """The first room in which a row can begin now."""
        for room in self.rooms:
            if room.cores < portion.cores:
                return None
            if room.memory >= portion.memory and (not gpu or room.gpus >= 1):
                return room
        return None

    def nearest(self, portion: Portion, *, gpu: bool) -> Room | None:
        """The room that lacks the least for a row: cores before a GPU, and that before memory."""
        if not self.rooms:
            return None
        cores = min(self.rooms[0].cores, portion.cores)
        return min(
            takewhile(lambda room: room.cores >= cores, self.rooms), key=lambda room: _lacks(room, portion, gpu=gpu)
        )


_RANK = attrgetter("rank")


def _lacks(room: Room, portion: Portion, *, gpu: bool) -> tuple[int, bool, int, int]:
    return max(0, portion.cores - room.cores), gpu and room.gpus < 1, max(0, portion.memory - room.memory), room.at


def kinds_with_room(hosts: Sequence[Host], occupancy: Occupancy, least: tuple[int, int] = (1, 1)) -> list[Kind]:
    """The hosts on which a row could begin, by kind. Hosts with the same values but for their names are one kind.

    Args:
        least: the cores and bytes of memory that each row needs at least.
    """
    kinds: dict[tuple[object, ...], Kind] = {}
    for at, host in enumerate(hosts):
        taken, capacity = occupancy.taken(host.name), host.capacity
        cores, memory = (1, 1) if host.lenient else least
        if (
            taken.rows >= host.jobs
            or len(capacity.cores) - taken.cores < cores
            or capacity.memory - taken.memory < memory
        ):
            continue
        key = _kind_of(host)
        kind = kinds.get(key) or kinds.setdefault(key, Kind(host))
        kind.rooms.append(Room(at, kind, host, taken))
    for kind in kinds.values():
        kind.rooms.sort(key=_RANK)
    return list(kinds.values())


def _kind_of(host: Host) -> tuple[object, ...]:
    """Equal for hosts that differ in nothing that matters to a row."""
    amounts = len(host.capacity.cores), host.capacity.memory, host.jobs, host.gpus, host.preempted, host.price
    return *amounts, host.platforms, host.images, host.labels, host.lenient


class Choice:
    """The kinds of host that rows of equal needs fit, the preferred first."""

    def __init__(self, demand: Demand, ranked: Iterable[tuple[tuple[float, ...], Kind]]) -> None:
        """Hold the kinds in groups of equal rank.

        Args:
            ranked: kinds of host that the rows fit, each with its rank, lower for a better one.
        """
        self._demand = demand
        self._groups: dict[tuple[float, ...], list[tuple[Kind, Portion]]] = {}
        for rank, kind in sorted(ranked, key=lambda pair: pair[0]):
            self._groups.setdefault(rank, []).append((kind, portion_on(demand.needs, kind.host)))

    def best(self) -> tuple[Room, Portion] | None:
        """The best room in which a row can begin now, and what the row gets there."""
        gpu = self._demand.needs.gpu
        for group in self._groups.values():
            rooms = [(room, portion) for kind, portion in group if (room := kind.best(portion, gpu=gpu))]
            if rooms:
                return min(rooms, key=lambda pair: pair[0].rank)
        return None

    def nearest(self) -> Room | None:
        """The room that lacks the least for a row that must wait."""
        gpu = self._demand.needs.gpu
        every = (pair for group in self._groups.values() for pair in group)
        rooms = [(room, portion) for kind, portion in every if (room := kind.nearest(portion, gpu=gpu))]
        return min(rooms, key=lambda pair: _lacks(*pair, gpu=gpu))[0] if rooms else None
