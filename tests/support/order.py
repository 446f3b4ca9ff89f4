"""The order of tests for workers: each begins with files that take long, so that at the end none works alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, TypeVar

#: Files that take long: first those that wait most, and among them some that keep the cores busy meanwhile.
LONG = (
    "tests/builds/fleet/test_slurm.py",
    "tests/builds/fleet/provision/test_systemd.py",
    "tests/builds/fleet/provision/test_hosts.py",
    "tests/builds/fleet/test_builds_on_a_fleet.py",
    "tests/channel/test_waits.py",
    "tests/builds/fleet/test_machines.py",
    "tests/test_own_feedstock.py",
    "tests/builds/runs/test_comparable_builds.py",
    "tests/builds/fleet/test_host.py",
    "tests/builds/fleet/test_fleet_command.py",
    "tests/channel/test_repodata.py",
    "tests/maintenance/test_kill_commands.py",
    "tests/builds/runs/test_from_init.py",
    "tests/builds/fleet/test_quarantine.py",
    "tests/builds/runs/test_interruption.py",
    "tests/test_guides.py",
    "tests/builds/testing/test_verifying.py",
    "tests/builds/engines/test_containers_of_killed_runs.py",
    "tests/builds/runs/test_building.py",
    "tests/builds/runs/test_logs.py",
    "tests/builds/runs/test_many_at_once.py",
    "tests/builds/stand_in/test_stand_in_build.py",
    "tests/builds/stand_in/test_zig.py",
    "tests/channel/test_package_index.py",
    "tests/cli/test_interruption.py",
    "tests/test_bounds.py",
    "tests/test_my_feedstock.py",
)


class Test(Protocol):
    """What a test needs to have for its place in the order."""

    @property
    def nodeid(self) -> str:
        """Its file, two colons, and its name."""

    def get_closest_marker(self, name: str) -> object:
        """Its marker with a name, if it has one."""


T = TypeVar("T", bound=Test)


def dealt(tests: Sequence[T], workers: int) -> list[T]:
    """Tests in an order of which each worker gets an equal part, as `--dist worksteal` gives them at the beginning.

    The tests of a file stay together. Each part begins with files that take long, those of `LONG` and then those with a
    test that is marked slow, in turn; the rest keeps its order.
    """
    files = [list(group) for _, group in groupby(tests, lambda test: test.nodeid.partition("::")[0])]
    placed = [(_place(file), file) for file in files]
    long = [file for _, file in sorted(((at, file) for at, file in placed if at is not None), key=lambda each: each[0])]
    others = [test for at, file in placed if at is None for test in file]
    piles: list[list[T]] = [[] for _ in range(workers)]
    for at, file in enumerate(long):
        piles[at % workers] += file
    order: list[T] = []
    for at, pile in enumerate(piles):
        room = (len(tests) - len(order)) // (workers - at) - len(pile)
        if room < 0:
            return list(tests)
        order += pile + others[:room]
        del others[:room]
    return order


def _place(file: Sequence[Test]) -> int | None:
    """The place of a file among those that take long; None if it does not."""
    name = file[0].nodeid.partition("::")[0]
    if name in LONG:
        return LONG.index(name)
    return len(LONG) if any(test.get_closest_marker("slow") for test in file) else None
