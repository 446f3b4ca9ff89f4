"""The simulator against real runs: the scheduler, its threads and a ledger, with builds that only wait."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from random import Random

import pytest

from feedstock_tools.builds.engines.contract import Built, Event, Started
from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
from feedstock_tools.builds.fleet.simulation.simulate import simulate
from feedstock_tools.builds.fleet.simulation.times import with_times
from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Capacity, Host, Limits
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.order import in_order
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs import scheduler
from feedstock_tools.builds.runs.crew import Watch
from feedstock_tools.builds.runs.observer import NextAttempt, Progress
from tests.support.rows import made_up_row

GIB = 1 << 30
#: How soon a run that hears nothing looks again, in seconds: the clock of the test goes on then.
TICK = 0.002


class Clock:
    """An observer that notes which rows the run begins, and a time that passes only while all builds wait.

    Time passes when the run has begun what it can and each of its builds waits: to the end of the first wait, and no
    other build goes on before the run has heard of what follows. So no order depends on how fast threads are.
    """

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._now = 0.0
        self._under_way: set[str] = set()
        self._waiting: list[tuple[float, str, threading.Event]] = []
        self._changing = threading.Lock()
        self._heard = True
        self._unheard = 0

    def tell(self, watch: Watch, event: Event) -> None:
        """Let the run hear of an event, in the thread of a row."""
        with self._changing:
            self._unheard += 1
        watch(event)

    def wait(self, row: str, seconds: float) -> None:
        """Let time pass, in the thread of a row."""
        over = threading.Event()
        with self._changing:
            heappush(self._waiting, (self._now + seconds, row, over))
        over.wait()

    def begin(self, row: Row) -> None:
        self.rows.append(row.name)
        self._under_way.add(row.name)
        self._heard = True

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        with self._changing:
            self._unheard -= 1
        self._heard = True

    def end(self, row: Row) -> None:
        self._under_way.remove(row.name)
        self._heard = True

    def progress(self, progress: Progress) -> None:
        with self._changing:
            all_wait = self._under_way and len(self._waiting) == len(self._under_way)
            if all_wait and not self._heard and not self._unheard:
                self._now, _, over = heappop(self._waiting)
                over.set()
            self._heard = False

    def ending(self, builds: int, *, go_on: bool = False) -> None: ...


class Waiters:
    """A crew whose builds only wait, and are recorded."""

    places_rows = False
    dashboard = None

    def __init__(self, hosts: Sequence[Host], ledger: Ledger, clock: Clock) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._clock = clock
        self._made: set[tuple[str, str]] = set()

    def present_hosts(self) -> Sequence[Host]:
        return self._hosts

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        return ()

    def lost(self, heirs: Sequence[Row]) -> Sequence[Row]:
        return ()

    def is_waiting(self) -> bool:
        return False

    def signs(self) -> Sequence[tuple[str, str]]:
        return ()

    def build(self, row: Row, stop: int, watch: Watch) -> Ended:
        records, host = [], row.at.host
        for output in row.wanted.missing:
            if output.package_id in self._made:
                continue
            self._clock.tell(watch, Started(output.name))
            nobody = row.configuration, row.name, output.name, "running", now(), "logs/a"
            record = self._ledger.begin(
                BuildRecord(row.wanted.identities[output.name], *nobody, "waits 1", (), machine=host)
            )
            took = row.wanted.seconds[output.name]
            self._clock.wait(row.name, took)
            self._made.add(output.package_id)
            record = replace(record, result="done", ended=now(), seconds=took)
            self._ledger.finish(record)
            records.append(record)
            self._clock.tell(watch, Built(output.name, Path(output.file_name), took))
        return Ended((), tuple(records))


def matrix(seed: int) -> tuple[tuple[Row, ...], tuple[Host, ...]]:
    """A small matrix and hosts at random."""
    chance = Random(seed)  # noqa: S311
    hosts = tuple(
        Host(f"host-{at}", Capacity(tuple(range(chance.choice([2, 4]))), 8 * GIB), chance.choice([1, 2]))
        for at in range(1, chance.choice([1, 2, 3]) + 1)
    )
    shared = {name: chance.uniform(30, 150) for name in "xy"}
    rows = []
    for at in range(chance.randint(4, 12)):
        before = [name for name in shared if chance.random() < 0.25]
        seconds = {name: shared[name] for name in before} | {f"p{at}": chance.uniform(30, 300)}
        needs = Needs(chance.choice([None, 1, 2]), GIB)
        rows.append(made_up_row(f"row {at}", *seconds, seconds=seconds, needs=needs))
    return tuple(with_times(in_order(rows), {}, None)), hosts


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_a_simulation_is_that_of_the_recorded_run(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_TICK", TICK)
    rows, hosts = matrix(seed)
    inputs = PlannedInputs(tmp_path, (), "")
    agenda = Agenda(rows, (), tuple(row.name for row in rows), {}, {}, inputs, hosts[0].capacity, hosts[0].jobs)
    clock = Clock()
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        scheduler.carry_out(agenda, Limits(retries=0), clock, ledger, Waiters(hosts, ledger, clock))
        machines = {record.row: record.machine for record in ledger.builds()}
    recorded = [(row, machines[row]) for row in clock.rows]
    assert len(recorded) == len(rows)
    simulation = simulate(rows, SimulatedHosts(hosts, {host.name: "host" for host in hosts}, {}))
    assert [(build.row, build.host) for build in simulation.builds] == recorded
