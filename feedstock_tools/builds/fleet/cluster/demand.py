"""How many jobs a run needs: the rows that wait are given to jobs that do not exist yet, by the same `decide`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.builds.fleet.cluster.script import JobKind
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.runs.decide import decide


@dataclass(frozen=True, slots=True)
class Change:
    """What must change about the jobs: new ones, by the name of their kind, and hosts that nothing will begin on."""

    new: Mapping[str, int]
    unused: frozenset[str]


def change(
    waiting: Collection[Row],
    running: Collection[Row],
    coming: Sequence[Host],
    kinds: Sequence[JobKind],
    living: Mapping[str, int],
    now: float,
) -> Change:
    """The jobs that a run lacks, and those that it does not need.

    Args:
        waiting: the rows that wait, the most urgent first; `running` are the others, on hosts that are there.
        coming: the jobs that are there and idle, that begin, or that wait in the queue.
        living: kind → the number of all its jobs that have not ended.
        now: on the clock of the rows.
    """
    starts = decide(waiting, running, coming, now)
    begun_now = {row.name for row in starts}
    left = [row for row in waiting if row.name not in begun_now]
    possible = {
        host.name: kind
        for kind in kinds
        for host in (kind.host(f"{kind.name}-new-{at}") for at in range(min(kind.most - living[kind.name], len(left))))
    }
    hosts = [kind.host(name) for name, kind in possible.items()]
    begun = decide(left, [*running, *starts], hosts, now)
    new = Counter(dict.fromkeys({row.at.host for row in begun}, 1))
    by_kind = Counter(possible[name].name for name in new)
    for kind in kinds:
        missing = min(kind.least, kind.most) - living[kind.name] - by_kind[kind.name]
        if waiting and missing > 0:
            by_kind[kind.name] += missing
    used = {row.at.host for row in starts}
    kept = _kept(coming, used, kinds, living) if waiting else frozenset()
    return Change(+by_kind, frozenset(host.name for host in coming if host.name not in used) - kept)


def _kept(
    coming: Sequence[Host], used: Collection[str], kinds: Sequence[JobKind], living: Mapping[str, int]
) -> frozenset[str]:
    """The jobs without a row that belong to the least number of their kind."""
    kept: set[str] = set()
    for kind in kinds:
        idle = [host.name for host in coming if host.name not in used and kind_of_host(host.name) == kind.name]
        spare = living[kind.name] - kind.least
        kept.update(idle[max(0, spare) :])
    return frozenset(kept)


def kind_of_host(host: str) -> str:
    """The name of the kind of a job, from that of its host."""
    return host.rpartition("-")[0]
