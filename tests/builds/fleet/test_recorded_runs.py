"""The simulator against real runs: the scheduler, its threads and a ledger, with builds that only wait."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from feedstock_tools.builds.engines.contract import Built, Event, Started
from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
from feedstock_tools.builds.fleet.simulation.simulate import Simulation, simulate
from feedstock_tools.builds.fleet.simulation.times import with_times
from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.capacity import Capacity, Limits
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.inputs import PlannedInputs
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.order import in_order
from feedstock_tools.builds.plan.work import Work, place_of
from feedstock_tools.builds.runs.crew import Watch
from feedstock_tools.builds.runs.decide import Start
from feedstock_tools.builds.runs.observer import Progress
from feedstock_tools.builds.runs.retries import NextAttempt
from feedstock_tools.builds.runs.row import BuiltRow
from feedstock_tools.builds.runs.scheduler import carry_out
from feedstock_tools.builds.runs.under_way import Attempt
from tests.support.works import made_up_work

GIB = 1 << 30
#: Two events of a recorded run are never nearer than this, in seconds: threads wake up at their own pace.
GAP = 0.02


class Clock:
    """An observer that notes which rows the run begins, and when it hears that outputs are made and rows have ended.

    A run begins rows only after such an event, so that is the time of their begin; threads that start them take time.
    """

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.took: dict[tuple[str, str], float] = {}
        self._moment = 0.0
        self._since: dict[str, float] = {}
        self._last: dict[str, str] = {}

    def begin(self, work: Work) -> None:
        self.rows.append(work.name)
        self._since[work.name] = self._moment = self._moment or time.monotonic()

    def event(self, work: Work, event: Event | NextAttempt) -> None:
        if isinstance(event, Built):
            self._last[work.name] = event.output
            self._note(work.name)

    def end(self, work: Work, built: BuiltRow) -> None:
        self._note(work.name)

    def progress(self, progress: Progress) -> None: ...
    def ending(self, builds: int, *, go_on: bool = False) -> None: ...

    def _note(self, row: str) -> None:
        self._moment, output = time.monotonic(), (row, self._last[row])
        self.took[output] = self.took.get(output, 0.0) + self._moment - self._since[row]
        self._since[row] = self._moment


class Waiters:
    """A crew whose builds only wait, and are recorded."""

    outlives_run = False

    def __init__(self, hosts: Sequence[Host], ledger: Ledger) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._made: set[tuple[str, str]] = set()

    def hosts(self) -> Sequence[Host]:
        return self._hosts

    def returned(self, waiting: Collection[str]) -> Sequence[Start]:
        return ()

    def is_waiting(self) -> bool:
        return False

    def build(self, work: Work, host: str, attempt: Attempt, watch: Watch) -> BuiltRow:
        records = []
        for output in work.missing:
            if place_of(output) in self._made:
                continue
            watch(Started(output.name))
            began, nobody = time.monotonic(), (work.configuration, work.name, output.name, "running", now(), "logs/a")
            record = self._ledger.begin(BuildRecord(work.identities[output.name], *nobody, "waits 1", (), machine=host))
            time.sleep(work.seconds[output.name])
            took = time.monotonic() - began
            self._made.add(place_of(output))
            record = replace(record, result="done", ended=now(), seconds=took)
            self._ledger.finish(record)
            records.append(record)
            watch(Built(output.name, Path(output.file_name), took))
        return BuiltRow((), tuple(records))


def matrices() -> Iterator[tuple[tuple[Work, ...], tuple[Host, ...]]]:
    """Small matrices and hosts at random, in which no two events come too near to each other."""
    for seed in range(10_000):
        chance = Random(seed)  # noqa: S311
        hosts = tuple(
            Host(f"host-{at}", Capacity(tuple(range(chance.choice([1, 2, 4]))), 8 * GIB), chance.choice([1, 2]))
            for at in range(1, chance.choice([1, 2, 3]) + 1)
        )
        shared = {name: chance.uniform(0.03, 0.15) for name in "xy"}
        works = []
        for at in range(chance.randint(4, 8)):
            before = [name for name in shared if chance.random() < 0.25]
            seconds = {name: shared[name] for name in before} | {f"p{at}": chance.uniform(0.03, 0.3)}
            needs = Needs(chance.choice([None, 1, 2]), GIB)
            works.append(made_up_work(f"row {at}", *seconds, seconds=seconds, needs=needs))
        ordered = tuple(with_times(in_order(works), {}, None))
        simulation = simulated(ordered, hosts)
        events = sorted({round(moment, 6) for build in simulation.builds for moment in (build.begin, build.end)})
        if not simulation.left_out and all(after - before > GAP for before, after in pairwise(events)):
            yield ordered, hosts


def simulated(works: Sequence[Work], hosts: Sequence[Host]) -> Simulation:
    return simulate(works, SimulatedHosts(tuple(hosts), {host.name: "host" for host in hosts}, {}))


MATRICES = [matrix for matrix, _ in zip(matrices(), range(20), strict=False)]


@pytest.mark.parametrize(("works", "hosts"), MATRICES, ids=[f"run {at}" for at in range(1, len(MATRICES) + 1)])
def test_the_order_of_a_simulation_is_that_of_the_recorded_run(
    works: tuple[Work, ...], hosts: tuple[Host, ...], tmp_path: Path
) -> None:
    names = tuple(work.name for work in works)
    inputs = PlannedInputs(tmp_path, (), "")
    agenda = Agenda(works, (), names, {}, {}, inputs, hosts[0].capacity, hosts[0].jobs)
    clock = Clock()
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        carry_out(agenda, Limits(retries=0), clock, ledger, Waiters(hosts, ledger))
        machines = {record.row: record.machine for record in ledger.builds()}
    recorded = [(row, machines[row]) for row in clock.rows]
    assert len(recorded) == len(works)
    took = {output: seconds for (_, output), seconds in clock.took.items()}
    again = [replace(work, seconds={output.name: took[output.name] for output in work.missing}) for work in works]
    assert [(build.row, build.host) for build in simulated(again, hosts).builds] == recorded
