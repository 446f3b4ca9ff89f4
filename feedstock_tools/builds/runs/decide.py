"""Which rows begin next, on which host, with which resources: a pure function over values.

The run on this machine calls it with one host, a fleet and a simulation with many. It does not depend on threads,
processes or transport.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from feedstock_tools.builds.plan.hosts import Host, fits, why_nowhere
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Running
from feedstock_tools.builds.runs.occupancy import Kind, NamedRows, Occupancy, RankedKinds, kinds_with_room
from feedstock_tools.feedstock.planned import PackageId

#: The expected number of preemptions during a row above which a host that stays is better for it.
_LONG = 0.25
#: Above this number the row waits for such a host: with that many preemptions, a row takes more than three times as
#: long on average ((e**x - 1) / x, if it begins again after each).
_TOO_LONG = 2.0


class Waiting(NamedRows):
    """Waiting rows, the most urgent first, and what they need: kept up to date as rows begin."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = {row.name: row for row in rows}
        self._needs = {id(row.wanted.needs): row.wanted.needs for row in self.rows.values()}
        self._counts = Counter(id(row.wanted.needs) for row in self.rows.values())

    def remove(self, row: str) -> Row:
        gone = self.rows.pop(row)
        self._counts[id(gone.wanted.needs)] -= 1
        return gone

    @property
    def least(self) -> tuple[int, int]:
        """The cores and bytes of memory that each row needs at least."""
        needs = [self._needs[each] for each, count in self._counts.items() if count]
        return min((each.cores or 1 for each in needs), default=1), min((each.memory or 1 for each in needs), default=1)


def without_host(pending: Collection[Row], hosts: Sequence[Host]) -> dict[str, str]:
    """The rows that none of some hosts can build, even when idle: name → reason."""
    reasons = {}
    reason_of: dict[tuple[object, ...], str | None] = {}
    ends = any(host.left is not None for host in hosts)
    for row in pending:
        seconds = row.wanted.expected if ends else None
        key = id(row.wanted.needs), seconds
        if key not in reason_of:
            reason_of[key] = why_nowhere(row.wanted.needs, hosts, seconds)
        if reason := reason_of[key]:
            reasons[row.name] = reason
    nowhere = {package: reasons[row.name] for row in pending if row.name in reasons for package in row.wanted.packages}
    for row in pending:
        for package in row.wanted.after & nowhere.keys():
            reasons.setdefault(row.name, nowhere[package])
    return reasons


def decide(pending: Collection[Row], running: Collection[Row], hosts: Sequence[Host], now: float) -> list[Row]:
    """The rows that begin now, each with its host and its share of that.

    A row begins if no other row makes one of its packages, the shared builds that it waits for have been run, and a
    host has room for it in cores, memory and jobs. A row that has no such host now keeps the host free that lacks the
    least for it: otherwise smaller rows would keep it waiting for ever. A row that fits no host delays no other.

    Among the hosts that can begin a row it takes one without a GPU if it needs none, then the cheapest, then the one
    with the most free cores, then the first. Before all that, a long row prefers hosts that are preempted less often;
    among equally cheap hosts a short row leaves these to long ones. A row waits for a host that stays if it would
    probably not end on any other. Of hosts whose allocation ends, a row takes the one that ends first of those that
    last long enough for it; a row of unknown duration the one that lasts longest.

    Args:
        pending: the waiting rows, the most urgent first (`in_order`: longest first), shared builds before the rows
            that wait for them. Rows of equal needs should share one value of them, which is then compared with the
            hosts once.
        running: the rows under way on any of the hosts. What `Waiting` and `Occupancy` know is not added up again.
        now: the time, on the clock of their `not_before`.
    """
    occupancy = running if isinstance(running, Occupancy) else Occupancy(running)
    kinds = kinds_with_room(hosts, occupancy, pending.least if isinstance(pending, Waiting) else (1, 1))
    still_open = sum(map(len, kinds))
    rates = sorted({host.preempted for host in hosts} - {0.0})
    ends = sorted({host.left for host in hosts if host.left is not None})
    kinds_of: dict[tuple[object, ...], RankedKinds | None] = {}
    begun: set[PackageId] = set()
    shared: set[PackageId] = set()
    starts: list[Row] = []
    for row in pending:
        if not still_open:
            break
        wanted, packages = row.wanted, occupancy.to_make(row)
        if row.is_shared:
            shared |= packages
        elif wanted.after and not (shared.isdisjoint(wanted.after) and occupancy.packages.isdisjoint(wanted.after)):
            continue
        if wanted.not_before > now or not (begun.isdisjoint(packages) and occupancy.packages.isdisjoint(packages)):
            continue
        seconds = wanted.expected
        risks = tuple(_risk(seconds, rate) for rate in rates) if rates else ()
        too_soon = None if seconds is None or not ends else bisect_left(ends, seconds)
        key = id(wanted.needs), risks, too_soon
        if key not in kinds_of:
            by_rate = {0.0: 0, **dict(zip(rates, risks, strict=True))}
            kinds_of[key] = _ranked_kinds(wanted.needs, seconds, by_rate, kinds, hosts)
        fitting = kinds_of[key]
        if fitting is None:
            continue
        found = fitting.best()
        if found is not None:
            free_host, portion = found
            host, share, is_open = free_host.kind.take(free_host, wanted.needs, portion, occupancy)
            starts.append(Row(row.configuration, row.planned, wanted, Running(host, share)))
            begun |= packages
            still_open -= not is_open
        elif (nearest := fitting.nearest()) is not None:
            nearest.kind.remove(nearest)
            still_open -= 1
        else:
            kinds_of[key] = None  # nothing is left for such rows
    return starts


def _risk(seconds: float | None, rate: float) -> int:
    """The risk of a row on a host that is preempted `rate` times an hour: 0 for little, 1, or 2 for too much.

    A row of unknown duration may be a long one.
    """
    if seconds is None:
        return 1
    expected = seconds / 3600 * rate
    return (expected > _LONG) + (expected > _TOO_LONG)


def _ranked_kinds(
    needs: Needs, seconds: float | None, risks: Mapping[float, int], kinds: Sequence[Kind], hosts: Sequence[Host]
) -> RankedKinds:
    """The kinds of host for rows with some needs and an expected duration.

    Args:
        risks: rate of preemption → the risk of these rows.
        kinds: the hosts with room; `hosts` are all of them.
    """
    fitting = [kind for kind in kinds if fits(needs, kind.host, seconds)]
    if 2 in risks.values() and any(risks[host.preempted] < 2 and fits(needs, host, seconds) for host in hosts):
        fitting = [kind for kind in fitting if risks[kind.host.preempted] < 2]
    is_known, is_long = seconds is not None, any(risks.values())

    def rank(host: Host) -> tuple[float, ...]:
        """Lower for a better one."""
        spare_gpu = bool(host.gpus) and not needs.gpu
        left = math.inf if host.left is None else host.left
        lasts = left if is_known else -left
        return risks[host.preempted], spare_gpu, host.price, host.preempted if is_long else -host.preempted, lasts

    return RankedKinds(needs, ((rank(kind.host), kind) for kind in fitting))
