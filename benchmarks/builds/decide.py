"""Measure `decide` over thousands of waiting rows, and the simulation of a run with them.

    python -m benchmarks.builds.decide [--rows 10000] [--hosts 500] [--runs 5]

Prints the processor time of one decision in several situations, and of a whole simulation, the least of some runs.
Then it simulates rows with a heavy tail of durations on hosts of which most are taken away now and then, in the given
order, with the longest first, and with the longest first where every row may go anywhere.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
from feedstock_tools.builds.fleet.simulation.simulate import simulate
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.order import in_order
from feedstock_tools.builds.plan.row import Row, Wanted
from feedstock_tools.builds.runs.decide import Waiting, decide
from feedstock_tools.builds.runs.occupancy import Occupancy
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow

GIB = 1 << 30
NEEDS = tuple(Needs(cores, memory * GIB, platform="linux-64") for cores in (4, 8, 16, 32) for memory in (8, 64))


def rows(count: int, chance: Random) -> list[Row]:
    """Rows with two outputs each, of which one in ten shares one with others, and a heavy tail of durations."""
    return [_row(number, chance.choice(NEEDS), 600 * chance.paretovariate(1.2), chance) for number in range(count)]


def _row(number: int, needs: Needs, seconds: float, chance: Random) -> Row:
    shared = f"lib{chance.randrange(100)}" if chance.random() < 0.1 else f"base{number}"
    outputs = tuple(PlannedOutput(name, "1", "0", 0, "linux-64", name) for name in (shared, f"package{number}"))
    seconds_of = {output.name: min(seconds, 24 * 3600.0) / 2 for output in outputs}
    row = PlannedRow(f"row {number}", {}, None, None, outputs)
    return Row("configuration", row, Wanted({}, {}, {}, outputs, outputs, needs, seconds_of, "given"))


def hosts(count: int, jobs: int, preempted: float) -> SimulatedHosts:
    """Hosts of 32 cores, one in five of which stays."""
    kind = Host("", Capacity(tuple(range(32)), 128 * GIB), jobs, frozenset({"linux-64"}), gpus=0, price=0.5)
    every = [replace(kind, name=f"host-{at}", preempted=preempted if at % 5 else 0.0) for at in range(count)]
    return SimulatedHosts(tuple(every), {host.name: "host" for host in every}, {"host": 300.0})


def least(runs: int, work: Callable[[], object]) -> float:
    """The least processor time of some runs, in seconds."""
    taken = []
    for _ in range(runs):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def measure_decisions(pending: Sequence[Row], count: int, jobs: int, runs: int) -> None:
    """Print the time of a decision over hosts that are free, full, and full but for one."""
    every = hosts(count, jobs, 0.0).hosts
    everyone = Waiting(pending)
    starts = decide(everyone, (), every, 0.0)
    begun = {row.name for row in starts}
    waiting = Waiting(row for row in pending if row.name not in begun)
    full, but_one = Occupancy(starts), Occupancy(starts[1:])
    large = Needs(64, platform="linux-64")
    misfits = Waiting(replace(row, wanted=replace(row.wanted, needs=large)) for row in waiting)
    situations = {
        f"all free: {len(starts)} begin": lambda: decide(everyone, (), every, 0.0),
        "all full": lambda: decide(waiting, full, every, 0.0),
        "one has become free": lambda: decide(waiting, but_one, every, 0.0),
        "no row fits any": lambda: decide(misfits, but_one, every, 0.0),
    }
    for what, situation in situations.items():
        print(
            f"{len(waiting):6} rows wait, {count} hosts with {jobs} jobs, {what}: {least(runs, situation) * 1e3:.2f} ms"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    works = rows(options.rows, Random(1))  # noqa: S311
    for count, jobs in ((1, 4), (options.hosts, 1), (options.hosts, 4)):
        measure_decisions(works, count, jobs, options.runs)
    ordered = in_order(works)
    for jobs in (1, 4):
        every = hosts(options.hosts, jobs, 0.0)
        took = least(max(1, options.runs // 3), lambda every=every: simulate(ordered, every))  # type: ignore[misc]
        print(f"simulating {len(works)} rows on {options.hosts} hosts with {jobs} jobs: {took:.2f} s")
    few = works[: options.rows // 20]
    for preempted in (0.0, 0.25):
        every = hosts(max(1, options.hosts // 20), 1, preempted)
        orders = {"the given order": few, "the longest first": in_order(few)}
        orders["the shortest first"] = orders["the longest first"][::-1]
        for what, order in orders.items():
            result = simulate(order, every)
            lost = sum(use.lost for use in result.uses) / 3600
            print(f"preempted {preempted} times an hour, {what}: {result.seconds / 3600:.1f} h, {lost:.0f} h lost")


if __name__ == "__main__":
    main()
