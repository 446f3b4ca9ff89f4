"""Fleets on this machine for tests, and builds on them through the command line."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest import MonkeyPatch

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.fleet.local import LocalFleet, local_fleet
from feedstock_tools.errors import WorkError
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.waiting import processes_below, wait_until

#: How long a host may be silent before its rows begin elsewhere, in seconds: short, so that tests are.
SILENT = 6.0


@dataclass(frozen=True)
class Fleet:
    """A fleet on this machine."""

    local: LocalFleet

    def build(self, feedstock: TinyFeedstock, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`feedstock-tools build --all --fleet`, with its errors among its output."""
        run = self.start(feedstock, *arguments)
        output, _ = run.communicate()
        return subprocess.CompletedProcess(run.args, run.returncode, output)

    def start(self, feedstock: TinyFeedstock, *arguments: str) -> subprocess.Popen[str]:
        """The same, left running."""
        words = ("--all", *arguments, f"--fleet={self.local.fleet.path}")
        return command.start(feedstock.command(*words), feedstock.folder, command.environment())

    def link(self) -> Link:
        """A connection to it, as a context."""
        return Link(self.local.fleet)

    def wait_for(self, hosts: int) -> None:
        """Wait until a number of hosts are present."""
        wait_for_hosts(self.local.fleet, hosts)

    def builds_of(self, host: str) -> dict[int, str]:
        """The processes of the builds on a host, with their command lines."""
        return processes_below(self.local.home_of(host) / "work")

    def wait_until_gone(self, host: str, seconds: float) -> float:
        """Wait until a host has no process of a build; how long it took, in seconds."""
        began = time.monotonic()
        wait_until(lambda: not self.builds_of(host), seconds)
        return time.monotonic() - began


def wait_for_hosts(fleet: FleetFolder, hosts: int) -> None:
    """Wait until a scheduler serves, and a number of hosts are present."""

    def are_present() -> bool:
        try:
            with Link(fleet) as link:
                wait_until(lambda: sum(map(bool, link.hosts.values())) == hosts, 120)
                return True
        except WorkError:  # the scheduler is starting
            return False

    wait_until(are_present, 120)


@contextmanager
def fleet_in(folder: Path, hosts: int, **settings: object) -> Iterator[Fleet]:
    """A running fleet whose hosts have connected; `settings` are those of each host (`local_fleet`)."""
    with started_fleet(folder, hosts, settings) as fleet:
        fleet.wait_for(hosts)
        yield fleet


@contextmanager
def started_fleet(folder: Path, hosts: int, settings: Mapping[str, object]) -> Iterator[Fleet]:
    """The same, whose hosts may not have connected yet."""
    with MonkeyPatch.context() as patch:
        patch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", f"{SILENT}s")
        with local_fleet(folder / "fleet", folder / "hosts", hosts, settings) as local:
            yield Fleet(local)
