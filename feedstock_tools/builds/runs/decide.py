"""Which rows begin next, on which host, with which resources: a pure function over values.

The run on this machine calls it with one host, a fleet and a simulation with many. It does not depend on threads,
processes or transport.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.builds.plan.capacity import Share
from feedstock_tools.builds.plan.hosts import Demand, EngineNeeds, Host, fits, why_nowhere
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Place, Work
from feedstock_tools.builds.runs.occupancy import Choice, Kind, Occupancy, Running, kinds_with_room

#: The expected number of preemptions during a row above which a host that stays is better for it.
_LONG = 0.25
#: Above this number the row waits for such a host: with that many preemptions, a row takes more than three times as
#: long on average ((e**x - 1) / x, if it begins again after each).
_TOO_LONG = 2.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A waiting row.

    Attributes:
        places: those of its missing outputs.
        not_before: the earliest time for it to begin.
        platform: its target subdir; `engine` is the name of its engine, empty for any; `image` the container image of
            that, None without a container.
        seconds: its expected duration; None if unknown.
    """

    row: str
    needs: Needs
    places: frozenset[Place]
    not_before: float = 0.0
    platform: str = "noarch"
    engine: str = ""
    image: str | None = None
    seconds: float | None = None

    @property
    def demand(self) -> Demand:
        """What it asks of a host."""
        return Demand(self.needs, self.platform, self.engine, self.image, self.seconds)


class Waiting(Collection[Pending]):
    """Waiting rows, the most urgent first, and what they need: kept up to date as rows begin."""

    def __init__(self, rows: Iterable[Pending] = ()) -> None:
        self.rows = {row.row: row for row in rows}
        self._needs = {id(row.needs): row.needs for row in self.rows.values()}
        self._counts = Counter(id(row.needs) for row in self.rows.values())

    def remove(self, row: str) -> Pending:
        """Take out a row; returns it."""
        gone = self.rows.pop(row)
        self._counts[id(gone.needs)] -= 1
        return gone

    @property
    def least(self) -> tuple[int, int]:
        """The cores and bytes of memory that each row needs at least."""
        needs = [self._needs[each] for each, count in self._counts.items() if count]
        return min((each.cores or 1 for each in needs), default=1), min((each.memory or 1 for each in needs), default=1)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Pending]:
        return iter(self.rows.values())

    def __contains__(self, row: object) -> bool:
        return isinstance(row, Pending) and self.rows.get(row.row) == row


@dataclass(frozen=True, slots=True)
class Start:
    """A row that begins now, its host, and its share."""

    row: str
    host: str
    share: Share


def pending_row(work: Work, *, not_before: float = 0.0, engine: EngineNeeds | None = None) -> Pending:
    """A row of an agenda that waits; without an engine it asks for none."""
    asks = engine or EngineNeeds()
    return Pending(work.name, work.needs, work.places, not_before, work.platform, asks.name, asks.image, work.expected)


def without_host(pending: Collection[Pending], hosts: Sequence[Host]) -> dict[str, str]:
    """The rows that none of some hosts can build, even when idle: name → reason."""
    reasons = {}
    reasons_by_demand: dict[tuple[object, ...], str | None] = {}
    ends = any(host.left is not None for host in hosts)
    for row in pending:
        key = id(row.needs), row.platform, row.engine, row.image, row.seconds if ends else None
        if key not in reasons_by_demand:
            reasons_by_demand[key] = why_nowhere(row.demand, hosts)
        if reason := reasons_by_demand[key]:
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
    probably not end on any other. Of hosts whose allocation ends, a row takes the one that ends first of those that
    last long enough for it; a row of unknown duration the one that lasts longest.

    Args:
        pending: the waiting rows, the most urgent first (`in_order`: longest first). Rows of equal needs should share
            one value of them, which is then compared with the hosts once.
        running: the rows under way on any of the hosts. What `Waiting` and `Occupancy` know is not added up again.
        now: the time, on the clock of `not_before`.
    """
    occupancy = running if isinstance(running, Occupancy) else Occupancy(running)
    kinds = kinds_with_room(hosts, occupancy, pending.least if isinstance(pending, Waiting) else (1, 1))
    still_open = sum(map(len, kinds))
    rates = sorted({host.preempted for host in hosts} - {0.0})
    ends = sorted({host.left for host in hosts if host.left is not None})
    choices: dict[tuple[object, ...], Choice | None] = {}
    begun: set[Place] = set()
    starts: list[Start] = []
    for row in pending:
        if not still_open:
            break
        if row.not_before > now or not (begun.isdisjoint(row.places) and occupancy.places.isdisjoint(row.places)):
            continue
        risks = tuple(_risk(row.seconds, rate) for rate in rates) if rates else ()
        too_soon = None if row.seconds is None or not ends else bisect_left(ends, row.seconds)
        key = id(row.needs), row.platform, row.engine, row.image, risks, too_soon
        if key not in choices:
            choices[key] = _choice(row.demand, {0.0: 0, **dict(zip(rates, risks, strict=True))}, kinds, hosts)
        choice = choices[key]
        if choice is None:
            continue
        found = choice.best()
        if found is not None:
            free_host, portion = found
            host, share, is_open = free_host.kind.take(free_host, row.needs, portion, occupancy)
            starts.append(Start(row.row, host, share))
            begun |= row.places
            still_open -= not is_open
        elif (nearest := choice.nearest()) is not None:
            nearest.kind.remove(nearest)
            still_open -= 1
        else:
            choices[key] = None  # nothing is left for such rows
    return starts


def _risk(seconds: float | None, rate: float) -> int:
    """The risk of a row on a host that is preempted `rate` times an hour: 0 for little, 1, or 2 for too much.

    A row of unknown duration may be a long one.
    """
    if seconds is None:
        return 1
    expected = seconds / 3600 * rate
    return (expected > _LONG) + (expected > _TOO_LONG)


def _choice(demand: Demand, risks: Mapping[float, int], kinds: Sequence[Kind], hosts: Sequence[Host]) -> Choice:
    """The kinds of host for some rows.

    Args:
        risks: rate of preemption → the risk of these rows.
        kinds: the hosts with room; `hosts` are all of them.
    """
    fitting = [kind for kind in kinds if fits(demand, kind.host)]
    if 2 in risks.values() and any(risks[host.preempted] < 2 and fits(demand, host) for host in hosts):
        fitting = [kind for kind in fitting if risks[kind.host.preempted] < 2]
    long = any(risks.values())
    return Choice(demand, ((_rank(kind.host, demand, risks, long=long), kind) for kind in fitting))


def _rank(host: Host, demand: Demand, risks: Mapping[float, int], *, long: bool) -> tuple[float, ...]:
    """The rank of a host for some rows, lower for a better one."""
    spare_gpu = bool(host.gpus) and not demand.needs.gpu
    left = math.inf if host.left is None else host.left
    lasts = left if demand.seconds is not None else -left
    return risks[host.preempted], spare_gpu, host.price, host.preempted if long else -host.preempted, lasts
