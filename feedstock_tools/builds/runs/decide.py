"""Which rows begin next, on which host, with which resources: a pure function over values.

The run on this machine calls it with one host, a fleet and a simulation with many. It does not depend on threads,
processes or transport.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from feedstock_tools.builds.plan.capacity import Share, jobs_of
from feedstock_tools.builds.plan.hosts import Demand, Host, Portion, fits, portion_on, why_nowhere
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.work import Place, Work

__all__ = ["Pending", "Running", "Start", "decide", "pending_row", "without_host"]

#: The expected number of preemptions during a row above which a host that stays is better for it.
_LONG = 0.25
#: And above which the row waits for such a host: with as many, a row takes more than three times as long on average,
#: ((e**x - 1) / x, if it begins again after each).
_TOO_LONG = 2.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A waiting row.

    Attributes:
        places: those of its missing outputs.
        not_before: the earliest time for it to begin.
        platform: its target subdir; `image` is the container image of its engine, None without a container.
        seconds: its expected duration; None if unknown.
    """

    row: str
    needs: Needs
    places: frozenset[Place]
    not_before: float = 0.0
    platform: str = "noarch"
    image: str | None = None
    seconds: float | None = None

    @property
    def demand(self) -> Demand:
        """What it asks of a host."""
        return Demand(self.needs, self.platform, self.image)


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


@dataclass(frozen=True, slots=True)
class Start:
    """A row that begins now, its host, and its share."""

    row: str
    host: str
    share: Share


def pending_row(work: Work, *, not_before: float = 0.0, image: str | None = None) -> Pending:
    """A row of an agenda that waits.

    Args:
        image: the container image of its engine; None without a container.
    """
    return Pending(work.name, work.needs, work.places, not_before, work.platform, image, work.expected)


def without_host(pending: Collection[Pending], hosts: Sequence[Host]) -> dict[str, str]:
    """The rows that none of some hosts can build, even when idle: name → reason."""
    reasons = {}
    known: dict[tuple[int, str, str | None], str | None] = {}
    for row in pending:
        key = id(row.needs), row.platform, row.image
        if key not in known:
            known[key] = why_nowhere(row.demand, hosts)
        if reason := known[key]:
            reasons[row.row] = reason
    return reasons


def decide(
    pending: Collection[Pending], running: Collection[Running], hosts: Sequence[Host], now: float
) -> list[Start]:
    """The rows that begin now.

    A row begins if no other row makes one of its outputs, and a host has cores, memory and a place for it. A row that
    has no such host now keeps the host free that lacks the least for it: otherwise smaller rows would keep it waiting
    for ever. A row that fits no host delays no other.

    Among the hosts that can begin a row it takes one without a GPU if it needs none, then the cheapest, then the one
    with the most free cores, then the first. Before all that, a long row prefers hosts that are preempted less often;
    among equally cheap hosts a short row leaves these to long ones. A row waits for a host that stays if it would
    probably not end on any other.

    Args:
        pending: the waiting rows, the most urgent first (`in_order`: longest first).
        running: the rows under way on any of the hosts.
        now: the time, on the clock of `not_before`.
    """
    rooms = list(_open_rooms(hosts, running))
    busy = {place for row in running for place in row.places}
    queues: dict[tuple[object, ...], _Queue] = {}
    rates = sorted({host.preempted for host in hosts} - {0.0})
    starts: list[Start] = []
    still_open = len(rooms)
    for row in pending:
        if not still_open:
            break
        if row.not_before > now or not busy.isdisjoint(row.places):
            continue
        risks = tuple(_risk(row.seconds, rate) for rate in rates)
        key = id(row.needs), row.platform, row.image, risks
        queue = queues.get(key)
        if queue is None:
            queue = queues[key] = _Queue(row.demand, dict(zip(rates, risks, strict=True)), rooms, hosts)
        room = queue.best()
        if room is None:
            still_open -= queue.keep_nearest()
            continue
        starts.append(Start(row.row, room.host.name, room.take(queue.portions[room.at], row.needs)))
        busy |= row.places
        still_open -= not room.is_open
    return starts


def _risk(seconds: float | None, rate: float) -> int:
    """The risk of a row on a host that is preempted `rate` times an hour: 0 for little, 1, or 2 for too much.

    A row of unknown duration may be a long one.
    """
    if seconds is None:
        return 1
    expected = seconds / 3600 * rate
    return (expected > _LONG) + (expected > _TOO_LONG)


class _Room:
    """The free resources of a host while `decide` works; `kept`: for a row that waits for it."""

    def __init__(self, at: int, host: Host, under_way: Sequence[Running]) -> None:
        taken = {core for row in under_way for core in row.share.cores}
        self.at = at
        self.host = host
        self.cores = [core for core in host.capacity.cores if core not in taken]
        self.memory = host.capacity.memory - sum(row.share.memory for row in under_way)
        self.jobs = host.jobs - len(under_way)
        self.gpus = math.inf if host.gpus is None else host.gpus - sum(row.gpu for row in under_way)
        self.kept = False

    @property
    def is_open(self) -> bool:
        """Whether any row could begin here."""
        return not self.kept and self.jobs > 0 and bool(self.cores) and self.memory > 0

    def lacks(self, portion: Portion, needs: Needs) -> tuple[int, int, int, int]:
        """What is missing for a row: GPUs, cores, bytes of memory, places; all 0 if it can begin."""
        return (
            int(needs.gpu and self.gpus < 1),
            max(0, portion.cores - len(self.cores)),
            max(0, portion.memory - self.memory),
            int(self.jobs < 1),
        )

    def take(self, portion: Portion, needs: Needs) -> Share:
        """The share of a row that begins here."""
        cores, self.cores = self.cores[: portion.cores], self.cores[portion.cores :]
        self.memory -= portion.memory
        self.jobs -= 1
        self.gpus -= needs.gpu
        return Share(tuple(cores), portion.memory, jobs_of(portion.cores, portion.memory, needs.memory_per_job))


_NOTHING = (0, 0, 0, 0)


class _Queue:
    """The hosts with free resources for rows of equal needs, the best first.

    Free resources only shrink while `decide` works, so an entry of a heap that is out of date stands too far in front,
    never too far behind.
    """

    def __init__(self, demand: Demand, risks: dict[float, int], rooms: Sequence[_Room], hosts: Sequence[Host]) -> None:
        self._needs = demand.needs
        self._risks = {0.0: 0, **risks}
        self._long = any(risks.values())
        allowed = 2 if self._too_risky(demand, hosts) else 3
        self._rooms = [
            room
            for room in rooms
            if not room.kept and self._risks[room.host.preempted] < allowed and fits(demand, room.host)
        ]
        self.portions = {room.at: portion_on(demand.needs, room.host) for room in self._rooms}
        self._able = [(self._rank(room), room.at, room) for room in self._rooms if self._can_begin(room)]
        heapify(self._able)
        self._nearest: list[tuple[tuple[int, int, int, int], int, _Room]] | None = None

    def best(self) -> _Room | None:
        """The best host that can begin a row now."""
        while self._able:
            rank, at, room = self._able[0]
            if not room.is_open or not self._can_begin(room):
                heappop(self._able)
            elif rank != (current := self._rank(room)):
                heappop(self._able)
                heappush(self._able, (current, at, room))
            else:
                return room
        return None

    def keep_nearest(self) -> int:
        """Keep the host free that lacks the least for a row that must wait; returns how many it kept."""
        if self._nearest is None:
            self._nearest = [(self._lacks(room), room.at, room) for room in self._rooms if room.is_open]
            heapify(self._nearest)
        while self._nearest:
            lacking, at, room = heappop(self._nearest)
            if not room.is_open:
                continue
            if lacking != (current := self._lacks(room)):
                heappush(self._nearest, (current, at, room))
                continue
            room.kept = True
            return 1
        return 0

    def _too_risky(self, demand: Demand, hosts: Sequence[Host]) -> bool:
        """Whether rows must wait for a host that stays long enough."""
        risks = self._risks
        return 2 in risks.values() and any(risks[host.preempted] < 2 and fits(demand, host) for host in hosts)

    def _lacks(self, room: _Room) -> tuple[int, int, int, int]:
        return room.lacks(self.portions[room.at], self._needs)

    def _can_begin(self, room: _Room) -> bool:
        return self._lacks(room) == _NOTHING

    def _rank(self, room: _Room) -> tuple[int, bool, float, float, int]:
        host = room.host
        stays = host.preempted if self._long else -host.preempted
        return (
            self._risks[host.preempted],
            bool(host.gpus) and not self._needs.gpu,
            host.price,
            stays,
            -len(room.cores),
        )


def _open_rooms(hosts: Sequence[Host], running: Collection[Running]) -> Iterator[_Room]:
    """The hosts on which a row could begin."""
    under_way: dict[str, list[Running]] = {}
    for row in running:
        under_way.setdefault(row.host, []).append(row)
    for at, host in enumerate(hosts):
        rows = under_way.get(host.name, ())
        if len(rows) < host.jobs:
            room = _Room(at, host, rows)
            if room.is_open:
                yield room
