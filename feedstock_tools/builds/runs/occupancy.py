"""What rows under way have reserved of hosts, by their needs (nothing is measured), and which host suits a row best."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import NamedTuple

from feedstock_tools.builds.plan.hosts import Host, Portion, Share, jobs_of, portion_on
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.feedstock.planned import PackageId


class NamedRows(Collection[Row]):
    """Rows by name, in an order."""

    rows: dict[str, Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows.values())

    def __contains__(self, row: object) -> bool:
        return isinstance(row, Row) and self.rows.get(row.name) == row


class Occupancy(NamedRows):
    """The rows under way, and the packages that they make: kept up to date as rows begin and end.

    Attributes:
        rows: by name.
        packages: what they have yet to make; `made` is what rows have made so far, which no row makes again.
        on_hosts: what they have taken of each host, by its name; a host without rows may be missing.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: dict[str, Row] = {}
        self.packages: set[PackageId] = set()
        self.made: set[PackageId] = set()
        self._on: dict[str, dict[str, Row]] = {}
        self.on_hosts: dict[str, Load] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        host = row.at.host
        self.rows[row.name] = row
        self.packages |= self.to_make(row)
        self._on.setdefault(host, {})[row.name] = row
        self.on_hosts[host] = self.on_hosts.get(host, _NOTHING).after(row, 1)

    def remove(self, row: str) -> Row:
        """Note that a row is no longer under way; returns it."""
        gone = self.rows.pop(row)
        host = gone.at.host
        self.packages -= gone.wanted.packages
        del self._on[host][row]
        self.on_hosts[host] = self.on_hosts[host].after(gone, -1)
        return gone

    def to_make(self, row: Row) -> frozenset[PackageId]:
        """The packages of a row that no other has made for it."""
        return row.wanted.packages - self.made if self.made else row.wanted.packages

    def note_made(self, packages: AbstractSet[PackageId]) -> None:
        self.made |= packages
        self.packages -= packages

    def cores(self, host: str) -> set[int]:
        return {core for row in self._on.get(host, {}).values() for core in row.at.share.cores}


class Load(NamedTuple):
    """The sum of what rows have taken of a host."""

    rows: int = 0
    cores: int = 0
    memory: int = 0
    gpus: int = 0

    def after(self, row: Row, sign: int) -> Load:
        """The sum with a row more, or less."""
        share = row.at.share
        return Load(
            self.rows + sign,
            self.cores + sign * len(share.cores),
            self.memory + sign * share.memory,
            self.gpus + sign * row.wanted.needs.gpu,
        )


_NOTHING = Load()


class Unreserved(NamedTuple):
    """What no row of this run has reserved of a host; `gpus` is infinite where they are not counted."""

    cores: int
    memory: int
    jobs: int
    gpus: float

    @property
    def is_open(self) -> bool:
        """Whether any row could begin there."""
        return self.jobs > 0 and self.cores > 0 and self.memory > 0

    def lacks(self, portion: Portion, *, gpu: bool) -> tuple[int, bool, int]:
        """What is missing for a row: cores before a GPU, and that before memory."""
        cores, memory = portion.cores - self.cores, portion.memory - self.memory
        return cores if cores > 0 else 0, gpu and self.gpus < 1, memory if memory > 0 else 0


class HostWithRoom(NamedTuple):
    """A host with room while rows are given to it; `at` is its position among the hosts.

    Of those on which a row can begin, the least is the best: `minus_cores` are its free cores, negated.
    """

    minus_cores: int
    at: int
    free: Unreserved
    kind: Kind


class Kind:
    """Equal hosts with room.

    Hosts of a kind with equal free resources are interchangeable except for their position.
    """

    def __init__(self, host: Host, hosts: Sequence[Host]) -> None:
        """Hold no host yet.

        Args:
            host: one of the kind; `hosts` are those of all kinds.
        """
        self.host = host
        self._hosts = hosts
        self._places: dict[Unreserved, list[int]] = {}  # heaps
        self._order: list[Unreserved] = []  # their keys, those with the most free cores first
        self._left: dict[int, tuple[int, ...]] = {}
        self._cuts: dict[tuple[object, ...], tuple[Share, tuple[int, ...]]] = {}

    def add(self, free: Unreserved, at: int) -> None:
        places = self._places.get(free)
        if places is None:
            self._places[free] = [at]
            insort(self._order, free, key=_minus_cores)
        else:
            heappush(places, at)

    def remove(self, free_host: HostWithRoom) -> None:
        """Let no row begin on a host; it is the first of those as free, as `best` and `nearest` return it."""
        places = self._places[free_host.free]
        heappop(places)
        if not places:
            del self._places[free_host.free]
            self._order.remove(free_host.free)

    def take(
        self, free_host: HostWithRoom, needs: Needs, portion: Portion, occupancy: Occupancy
    ) -> tuple[str, Share, bool]:
        """Let a row begin on a host: the name of the host, its share, and whether others could begin there too."""
        at, free = free_host.at, free_host.free
        host = self._hosts[at]
        left = self._left.get(at)
        if left is None:
            taken, every = occupancy.cores(host.name), host.capacity.cores
            left = tuple(core for core in every if core not in taken) if taken else every
        key = left, portion.cores, portion.memory, needs.memory_per_job
        if (cut := self._cuts.get(key)) is None:
            cut = self._cuts[key] = _cut(left, portion, needs)
        share, self._left[at] = cut
        self.remove(free_host)
        less = Unreserved(
            free.cores - portion.cores, free.memory - portion.memory, free.jobs - 1, free.gpus - needs.gpu
        )
        if is_open := less.is_open:
            self.add(less, at)
        return host.name, share, is_open

    def best(self, portion: Portion, *, gpu: bool) -> HostWithRoom | None:
        """The best host on which a row can begin now."""
        found, at = None, -1
        for free in self._order:
            if free.cores < (found or portion).cores:
                break
            if free.memory >= portion.memory and (not gpu or free.gpus >= 1):
                first = self._places[free][0]
                if found is None or first < at:
                    found, at = free, first
        return None if found is None else HostWithRoom(-found.cores, at, found, self)

    def nearest(self, portion: Portion, *, gpu: bool) -> tuple[tuple[int, bool, int], int, HostWithRoom] | None:
        """The host that lacks the least for a row, after what it lacks and its position."""
        cores = min(self._order[0].cores, portion.cores) if self._order else 0
        found = None
        for free in self._order:
            if free.cores < cores:
                break
            lacking = free.lacks(portion, gpu=gpu), self._places[free][0], free
            if found is None or lacking < found:
                found = lacking
        if found is None:
            return None
        lacks, at, free = found
        return lacks, at, HostWithRoom(-free.cores, at, free, self)

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))


def _cut(cores: tuple[int, ...], portion: Portion, needs: Needs) -> tuple[Share, tuple[int, ...]]:
    """A share of some free cores, and the cores that are left."""
    jobs = jobs_of(portion.cores, portion.memory, needs.memory_per_job)
    return Share(cores[: portion.cores], portion.memory, jobs), cores[portion.cores :]


def _minus_cores(free: Unreserved) -> int:
    return -free.cores


def kinds_with_room(hosts: Sequence[Host], occupancy: Occupancy, least: tuple[int, int] = (1, 1)) -> list[Kind]:
    """The hosts on which a row could begin, by kind. Hosts with the same values but for their names are one kind.

    Args:
        least: the cores and bytes of memory that each row needs at least.
    """
    kinds: dict[tuple[object, ...], Kind] = {}
    least_cores, least_memory = least
    taken = occupancy.on_hosts
    for at, host in enumerate(hosts):
        rows, cores, memory, gpus = taken.get(host.name, _NOTHING)
        if rows >= host.jobs:
            continue
        capacity = host.capacity
        free_cores, free_memory = len(capacity.cores) - cores, capacity.memory - memory
        if (free_cores < least_cores or free_memory < least_memory) and not (
            host.lenient and free_cores > 0 and free_memory > 0
        ):
            continue
        key = _kind_of(host)
        if (kind := kinds.get(key)) is None:
            kind = kinds[key] = Kind(host, hosts)
        free_gpus = math.inf if host.gpus is None else host.gpus - gpus
        kind.add(Unreserved(free_cores, free_memory, host.jobs - rows, free_gpus), at)
    return list(kinds.values())


def _kind_of(host: Host) -> tuple[object, ...]:
    """Equal for hosts that differ in nothing that matters to a row."""
    amounts = len(host.capacity.cores), host.capacity.memory, host.jobs, host.gpus, host.preempted, host.price
    return *amounts, host.left, host.platforms, host.engines, host.images, host.labels, host.lenient, host.keeps


class RankedKinds:
    """The kinds of host that rows of equal needs fit, the preferred first."""

    def __init__(self, needs: Needs, ranked: Iterable[tuple[tuple[float, ...], Kind]]) -> None:
        """Hold the kinds in groups of equal rank.

        Args:
            ranked: kinds of host that the rows fit, each with its rank, lower for a better one.
        """
        self._needs = needs
        groups: dict[tuple[float, ...], list[tuple[Kind, Portion]]] = {}
        for rank, kind in sorted(ranked, key=lambda pair: pair[0]):
            groups.setdefault(rank, []).append((kind, portion_on(needs, kind.host)))
        self._groups = list(groups.values())

    def best(self) -> tuple[HostWithRoom, Portion] | None:
        """The best host on which a row can begin now, and what the row gets there."""
        gpu = self._needs.gpu
        for group in self._groups:
            best = None
            for kind, portion in group:
                found = kind.best(portion, gpu=gpu)
                if found is not None and (best is None or found < best[0]):
                    best = found, portion
            if best is not None:
                return best
        return None

    def nearest(self) -> HostWithRoom | None:
        """The host that lacks the least for a row that must wait."""
        gpu = self._needs.gpu
        every = (kind.nearest(portion, gpu=gpu) for group in self._groups for kind, portion in group)
        return min(found)[2] if (found := [each for each in every if each]) else None
