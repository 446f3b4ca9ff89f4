"""What a fleet costs: carrying 200 builds of one second, a bundle sent twice, and a run in which hosts fail.

    python -m benchmarks.builds.fleet carrying [BUILDS] [HOSTS]
    python -m benchmarks.builds.fleet bundle
    python -m benchmarks.builds.fleet faults [OPTIONS OF BUILD]   # as root, with namespaces: gpuprobe on three machines
    python -m benchmarks.builds.fleet same EXAMPLE [OPTIONS OF BUILD]   # likewise: every row on two machines

`carrying` performs no build, so that it measures orders, processes, events and the hub alone.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.local import WORKER, LocalFleet
from feedstock_tools.builds.fleet.orders.compiling import Delivery, Parcels, compile_order, parcels_of
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.results.events import Finished, events_of
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.plan.workspace import open_workspace
from tests.support import command
from tests.support.feedstocks import copy_of_example
from tests.support.fleets import fleet_in
from tests.support.machines import Machine, machines_in
from tests.support.namespaces import why_no_namespaces
from tests.support.waiting import wait_until

#: The machines with their leases in seconds: a row takes longer than the one and less than the other.
_LEASES = {"m1": 20.0, "m2": 20.0, "m3": 4.0}
_CUT, _KILLED = ("m1", "m3"), "m2"
_HOST = "feedstock_tools.builds.fleet.host"


def _prepared(folder: Path) -> tuple[Parcels, Order]:
    feedstock = copy_of_example("gpuprobe", folder)
    workspace = open_workspace(feedstock, None, ["stand-in"], os.environ)
    chosen = [each for each in workspace.plan.configurations if each.platform == "linux-64"][:1]
    planned = agenda(workspace, workspace.plan.complete(chosen), Capacity.of_machine())
    parcels, row = parcels_of(workspace, planned), planned.todo[0]
    engine = workspace.engines.engine_for(row.configuration, row.platform)
    row = replace(row, running=Running("h1", Share((0,), 1 << 20, 1)))
    return parcels, compile_order("me", parcels, row, engine, planned.channels[row.configuration], [], [])


def _carry(link: Link, host: str, order: Order) -> None:
    """One order to its end, as a run carries it."""
    order = replace(order, attempt=uuid4().hex)
    link.ask(host, "start", {"order": order.to_json()})
    offset, ended = 0, False
    while not ended:
        content = link.ask(host, "events", {"attempt": order.attempt, "offset": offset})["data"]
        offset += len(content)
        ended = any(isinstance(event, Finished) for event in events_of(content))
    link.ask(host, "forget", {"attempt": order.attempt})


def carrying(builds: int = 200, hosts: int = 8) -> None:
    """Some builds of one second, one at a time on each host."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parcels, order = _prepared(folder)
        change = f"import sys; from {_HOST} import attempts; attempts.MODULE = 'benchmarks.builds.one_second'"
        patched = f"{change}; from {WORKER} import main; sys.exit(main(sys.argv[1]))"

        def start_host(self: LocalFleet, host: str) -> None:
            home = self.home_of(host)
            home.mkdir(parents=True, exist_ok=True)
            program = [sys.executable, "-c", patched, str(self.fleet.for_host(host))]
            self.processes[host] = subprocess.Popen(program, env=command.environment(), stdin=subprocess.DEVNULL)

        LocalFleet.start_host = start_host  # type: ignore[method-assign]
        with fleet_in(folder, hosts) as fleet, fleet.link() as link:
            names = sorted(link.listing.hosts)
            for host in names:
                Delivery(link, parcels, folder).provide(host, order)
            waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
            for number in range(builds):
                waiting.put(number)

            def work(host: str) -> None:
                while True:
                    try:
                        waiting.get_nowait()
                    except queue.Empty:
                        return
                    _carry(link, host, order)

            began, sent = time.monotonic(), link.sent
            threads = [threading.Thread(target=work, args=(host,)) for host in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took, ideal = time.monotonic() - began, builds / hosts
            print(
                f"{builds} builds of 1 s on {hosts} hosts: {took:.1f} s, {took / ideal:.3f} of the ideal {ideal:.1f} s"
            )
            print(f"  {(link.sent - sent) / builds / 1024:.1f} KiB sent for each")


def bundle() -> None:
    """50 MB that a host gets, gets again, and gets with one file changed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        feedstock = copy_of_example("gpuprobe", folder)
        (feedstock / "recipe" / "large").write_bytes(os.urandom(50_000_000))
        with fleet_in(folder, 1) as fleet:
            for what in ("first", "again", "with one file changed"):
                if what.startswith("with"):
                    (feedstock / "recipe" / "small").write_text("new")
                workspace = open_workspace(feedstock, None, ["stand-in"], os.environ)
                chosen = workspace.plan.complete(workspace.plan.configurations[:1])
                planned = agenda(workspace, chosen, Capacity.of_machine())
                parcels = parcels_of(workspace, planned)
                row = planned.todo[0]
                engine = workspace.engines.engine_for(row.configuration, row.platform)
                row = replace(row, running=Running("h1", Share((0,), 1 << 20, 1)))
                choice = planned.channels[row.configuration]
                order = compile_order("me", parcels, row, engine, choice, [], [])
                with fleet.link() as link:
                    began = time.monotonic()
                    Delivery(link, parcels, folder).provide("h1", order)
                    print(
                        f"{parcels.files.size / 1e6:.0f} MB {what}: {link.sent} bytes, {time.monotonic() - began:.2f} s"
                    )


def same(example: str, *more: str) -> None:
    """Every row of an example on one machine and then on another, and how their packages compare."""
    reason = why_no_namespaces()
    if reason is not None:
        sys.exit(f"this needs machines: {reason}")
    leases = {"m1": 60.0, "m2": 60.0}
    with tempfile.TemporaryDirectory(dir="/tmp") as name, machines_in(Path(name), leases) as made:
        feedstock = copy_of_example(example, Path(name))
        options = ("--all", "--build-twice", "all", *more, "--channel", "stand-in", f"--fleet={made.fleet.path}")
        began = time.monotonic()
        ended = command.run(command.tool("build", *options), feedstock)
        print(ended.stdout.rpartition("\n\n")[2] if ended.stdout else ended.stderr)
        print(f"exit status {ended.returncode} after {time.monotonic() - began:.0f} s")
        with Ledger(feedstock / "build_artifacts" / "ledger.sqlite") as ledger:
            first = {each.sha256: record.machine for record in ledger.builds() for each in record.packages}
            pairs = Counter((first[record.sha256], record.machine) for record in ledger.comparisons())
            print(f"machines of the first and the second build of a package: {dict(pairs)}")


@dataclass
class Watched:
    """A run of `build --fleet` whose lines are read as they come, each with its time."""

    run: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        self.lines.extend((time.monotonic(), line) for line in self.run.stdout or ())

    def end(self) -> int:
        self.run.wait()
        self._reader.join()
        return self.run.returncode

    def count(self, text: str) -> int:
        return sum(text in line for _, line in self.lines)

    def told(self, text: str, since: float) -> float:
        """The seconds from a moment to the first line with a text after it."""

        def found() -> list[float]:
            return [moment - since for moment, line in self.lines if text in line and moment > since]

        wait_until(lambda: bool(found()) or self.run.poll() is not None, 600)
        return found()[0] if found() else float("nan")


def faults(*more: str) -> None:
    """gpuprobe on three machines: two are cut off for longer than their leases and healed, and one dies."""
    reason = why_no_namespaces()
    if reason is not None:
        sys.exit(f"this needs machines: {reason}")
    with tempfile.TemporaryDirectory(dir="/tmp") as name, machines_in(Path(name), _LEASES) as made:
        feedstock = copy_of_example("gpuprobe", Path(name))
        words = command.tool("build", "--all", *more, "--channel", "stand-in", f"--fleet={made.fleet.path}")
        began = time.monotonic()
        watched = Watched(command.start(words, feedstock))
        wait_until(lambda: watched.count(" done (") >= 6, 600)
        for host in _CUT:
            _cut(made.machines[host], watched)
        _kill(made.machines[_KILLED], watched)
        status = watched.end()
        print("".join(line for _, line in watched.lines if re.search(r"\bm\d: |superseded", line)))
        print(f"exit status {status} after {time.monotonic() - began:.0f} s")
        count_packages(feedstock / "build_artifacts" / "ledger.sqlite")


def _cut(machine: Machine, watched: Watched) -> None:
    """Cut a machine off at the beginning of a build, and heal it when its row has been built elsewhere."""
    wait_until(lambda: not machine.builds(), 600)
    wait_until(lambda: bool(machine.builds()), 600)
    machine.cut()
    cut, lease = time.monotonic(), _LEASES[machine.name]
    wait_until(lambda: not machine.builds(), 600)
    print(f"{machine.name}: its build ended {time.monotonic() - cut:.1f} s after the cut (lease {lease:g} s)")
    print(f"{machine.name}: its row was free for others {watched.told(f': {machine.name}: ', cut):.1f} s after the cut")
    row = next(line for at, line in watched.lines if at > cut and f": {machine.name}: " in line).partition(":")[0]
    watched.told(f"{row}: done", cut)
    machine.heal()


def _kill(machine: Machine, watched: Watched) -> None:
    wait_until(lambda: bool(machine.builds()), 600)
    machine.kill()
    killed = time.monotonic()
    wait_until(lambda: not machine.processes(), 60)
    print(f"{machine.name}: no process of it was left {time.monotonic() - killed:.1f} s after its death")
    free = watched.told(f": {machine.name}: ", killed)
    print(f"{machine.name}: its row was free for others {free:.1f} s after its death")


def count_packages(path: Path) -> None:
    """What a ledger says of a run in which hosts failed."""
    with Ledger(path) as ledger:
        records = ledger.builds()
        done = Counter(each.file for record in records if record.result == "done" for each in record.packages)
        held = sum(ledger.holds(record) for record in records if record.result == "done")
    late = sum(record.reason.startswith("superseded") for record in records)
    print(f"{len(done)} packages, each built up to {max(done.values())} times, {held} in the channel as recorded")
    print(f"{late} late results of outputs recorded as superseded")
    print(dict(Counter(record.machine for record in records if record.result == "done")))


if __name__ == "__main__":
    if sys.argv[1] == "carrying":
        carrying(*map(int, sys.argv[2:]))
    elif sys.argv[1] == "bundle":
        bundle()
    elif sys.argv[1] == "same":
        same(*sys.argv[2:])
    else:
        faults(*sys.argv[2:])
