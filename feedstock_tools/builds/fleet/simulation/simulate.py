"""A run over hosts that nobody rents yet: the same state and the same decisions as a real one, and no waiting.

Time passes from event to event: an output is made, a row ends, a host is taken away or is back. Everything that
chance decides comes from a seed, for each host apart, so another order of rows meets the same preemptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter
from random import Random

from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.decide import without_host
from feedstock_tools.builds.runs.state import RunState
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PackageId

#: The number of times that a row begins, after which it will not end in our time.
_MOST_ATTEMPTS = 200
#: The number of courses that preemptions take in a simulation.
SEEDS = 20
_DONE = Ended((), ())
#: The order of events at one time: what is made counts before a host is gone, and a host is back before it decides.
_MADE, _ENDED, _GONE, _BACK = range(4)


@dataclass(frozen=True, slots=True)
class SimulatedBuild:
    """An attempt to build a row on a host, in seconds since the run began; `cut_off` if the host was taken away."""

    row: str
    configuration: str
    host: str
    begin: float
    end: float
    packages: int
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class HostUse:
    """A host in a simulation, in seconds; it is rented from the start of the run to the end of its last build.

    `busy` counts the time in which it builds at least one row, `lost` the time of builds that were cut off.
    """

    host: Host
    rented: float
    busy: float
    lost: float
    preemptions: int

    @property
    def cost(self) -> float:
        """The price of the time in which it is rented."""
        return self.rented / 3600 * self.host.price


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result: how long the run takes, its builds in the order of their begin, and its hosts.

    `left_out` are the rows that no host can build, with the reasons.
    """

    seconds: float
    builds: tuple[SimulatedBuild, ...]
    uses: tuple[HostUse, ...]
    left_out: Mapping[str, str]

    @property
    def rented(self) -> float:
        """The machine time of all hosts, in seconds."""
        return sum(use.rented for use in self.uses)

    @property
    def cost(self) -> float:
        """What the hosts cost together."""
        return sum(use.cost for use in self.uses)


def courses(rows: Sequence[Row], hosts: SimulatedHosts, seed: int = 0) -> tuple[Simulation, ...]:
    """Run rows over hosts, once if chance has no part in it, else with `SEEDS` seeds from the given one on."""
    seeds = SEEDS if any(host.preempted for host in hosts.hosts) else 1
    return tuple(simulate(rows, hosts, seed + at) for at in range(seeds))


def simulate(rows: Sequence[Row], hosts: SimulatedHosts, seed: int = 0) -> Simulation:
    """Run some rows over some hosts.

    Args:
        rows: in the order of a run, each with the time of every missing output (`with_times`).
        seed: of the preemptions.
    """
    left_out = without_host(rows, hosts.hosts)
    possible = [row for row in rows if row.name not in left_out]
    run = _Run(RunState(possible, fail_fast=False), possible, hosts, seed)
    run.carry_out()
    builds = tuple(run.builds)
    uses = tuple(place.use() for place in run.places.values())
    return Simulation(max((build.end for build in builds), default=0.0), builds, uses, left_out)


@dataclass(slots=True)
class _Place:
    """A host while it is simulated: the times at which it was taken away and back, and the ends of its builds."""

    host: Host
    chance: Random
    back_after: float
    ready_after: float
    present: bool = False
    keeps: frozenset[str] = frozenset()
    away: list[tuple[float, float]] = field(default_factory=list)
    building: set[str] = field(default_factory=set)
    builds: list[SimulatedBuild] = field(default_factory=list)

    @property
    def host_now(self) -> Host:
        """The host, with the shared builds that it keeps."""
        return replace(self.host, keeps=self.keeps) if self.keeps else self.host

    def use(self) -> HostUse:
        """What the host was used for; nothing counts after its last build."""
        last = max((build.end for build in self.builds), default=0.0)
        away = [(gone, back) for gone, back in self.away if gone <= last]
        rented = last - sum(min(back, last) - gone for gone, back in away)
        lost = sum(build.end - build.begin for build in self.builds if build.cut_off)
        return HostUse(self.host, rented, _covered(self.builds), lost, len(away))


def _covered(builds: Sequence[SimulatedBuild]) -> float:
    """The time in which at least one build runs."""
    covered = until = 0.0
    for build in sorted(builds, key=attrgetter("begin")):
        covered += max(0.0, build.end - max(until, build.begin))
        until = max(until, build.end)
    return covered


def _seconds(rows: Sequence[Row]) -> dict[PackageId, float]:
    """The time of each output, from the row that makes it first."""
    of_all = {output.package_id: row.wanted.seconds[output.name] for row in rows for output in row.wanted.missing}
    return of_all | {output.package_id: row.wanted.seconds[output.name] for row in rows for output in row.wanted.makes}


class _Run:
    """A simulated run: the state of a real one, a clock, and the events to come.

    An event is its time, its kind, a number that keeps events of one time in order, the name of its row or host, and
    the output that is made, or the number of the attempt that ends.
    """

    def __init__(self, state: RunState, rows: Sequence[Row], hosts: SimulatedHosts, seed: int) -> None:
        self._state = state
        self._rows = {row.name: row for row in rows}
        self._seconds = _seconds(rows)
        counts = Counter(output.package_id for row in rows for output in row.wanted.missing)
        self._shared = {package for package, count in counts.items() if count > 1}
        self._made: set[PackageId] = set()
        self._attempts: dict[str, list[tuple[str, float]]] = {row.name: [] for row in rows}
        self._order: list[tuple[str, int]] = []
        self._builds: dict[tuple[str, int], SimulatedBuild] = {}
        self._events: list[tuple[float, int, int, str, int, str]] = []
        self._numbers = count()
        self.places = {
            name: _Place(host, Random(f"{seed} {name}"), hosts.back.get(kind, 0.0), hosts.ready.get(kind, 0.0))  # noqa: S311
            for host, name, kind in ((host, host.name, hosts.kinds[host.name]) for host in hosts.hosts)
        }
        self._hosts: list[Host] = []
        self._overhead = hosts.overhead
        for place in self.places.values():
            self._push(place.ready_after, _BACK, place.host.name)

    def carry_out(self) -> None:
        """Begin rows and let time pass until all have ended."""
        while len(self._state.ended) < len(self._rows):
            now, kind, _, name, attempt, output = heappop(self._events)
            if kind == _MADE:
                self._make(name, attempt, output)
            elif kind == _ENDED:
                self._end(name, attempt, now)
            elif kind == _GONE:
                self._lose(self.places[name], now)
            else:
                self._return(self.places[name], now)
            if not self._events or self._events[0][0] > now:
                self._begin(now)

    @property
    def builds(self) -> Iterator[SimulatedBuild]:
        """All attempts, in the order in which they began."""
        return (self._builds[key] for key in self._order)

    def _begin(self, now: float) -> None:
        for row in self._state.begin(self._hosts, now):
            attempts = self._attempts[row.name]
            if len(attempts) == _MOST_ATTEMPTS:
                hint = "Give it a host that stays, or one that is taken away less often."
                raise WorkError(f"{row.name} would not end: it was cut off {_MOST_ATTEMPTS} times", hint=hint)
            attempts.append((row.at.host, now))
            number = len(attempts)
            self._order.append((row.name, number))
            self.places[row.at.host].building.add(row.name)
            end = now + self._overhead
            for output in row.wanted.missing:
                package = output.package_id
                if package not in self._made:
                    end += self._seconds[package]
                    if package in self._shared:
                        self._push(end, _MADE, row.name, number, output.name)
            self._push(end, _ENDED, row.name, number)

    def _make(self, row: str, attempt: int, output: str) -> None:
        if self._runs(row, attempt):
            self._made |= self._state.made(row, output)

    def _end(self, row: str, attempt: int, now: float) -> None:
        if self._runs(row, attempt):
            self._close(row, now, cut_off=False)
            wanted, place = self._rows[row].wanted, self.places[self._attempts[row][-1][0]]
            self._made |= wanted.packages & self._shared
            self._state.end(row, _DONE)
            if wanted.makes_kept:
                place.keeps |= wanted.makes_kept
                self._hosts = self._present()

    def _runs(self, row: str, attempt: int) -> bool:
        """Whether an attempt is under way: it may have been cut off before its event."""
        return row in self._state.running and len(self._attempts[row]) == attempt

    def _close(self, row: str, now: float, *, cut_off: bool) -> None:
        built, attempts = self._rows[row], self._attempts[row]
        host, begin = attempts[-1]
        packages = 0 if cut_off or built.is_shared else len(built.wanted.makes)
        build = SimulatedBuild(row, built.configuration, host, begin, now, packages, cut_off)
        self._builds[row, len(attempts)] = build
        self.places[host].building.discard(row)
        self.places[host].builds.append(build)

    def _lose(self, place: _Place, now: float) -> None:
        """A host goes, and what it keeps: its rows begin again elsewhere, before all others."""
        for row in sorted(place.building, reverse=True):
            self._close(row, now, cut_off=True)
            self._state.postpone(row, now)
        place.present, place.keeps = False, frozenset()
        place.away.append((now, now + place.back_after))
        self._push(now + place.back_after + place.ready_after, _BACK, place.host.name)
        self._hosts = self._present()
        kept = {name for host in self._hosts for name in host.keeps}
        lost = {name for heir in self._state.inheriting for name in heir.wanted.needs.shared} - kept
        for shared in [row for row in self._rows.values() if not row.wanted.makes_kept.isdisjoint(lost)]:
            self._state.again(shared)

    def _return(self, place: _Place, now: float) -> None:
        place.present = True
        self._hosts = self._present()
        self._plan_preemption(place, now)

    def _present(self) -> list[Host]:
        return [place.host_now for place in self.places.values() if place.present]

    def _plan_preemption(self, place: _Place, now: float) -> None:
        if place.host.preempted:
            wait = place.chance.expovariate(place.host.preempted / 3600)
            self._push(now + wait, _GONE, place.host.name)

    def _push(self, at: float, kind: int, name: str, attempt: int = 0, output: str = "") -> None:
        heappush(self._events, (at, kind, next(self._numbers), name, attempt, output))
