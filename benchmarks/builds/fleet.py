"""What a fleet costs: carrying 200 builds of one second, and a bundle sent twice.

    python -m benchmarks.builds.fleet carrying [BUILDS] [HOSTS]
    python -m benchmarks.builds.fleet bundle

`carrying` performs no build, so that it measures orders, processes, events and the hub alone.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.local import WORKER, LocalFleet
from feedstock_tools.builds.fleet.orders.compiling import Delivery, Parcels, compile_order, parcels_of
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.results.events import Finished, events_of
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.plan.workspace import open_workspace
from tests.support import command
from tests.support.feedstocks import copy_of_example
from tests.support.fleets import fleet_in

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


if __name__ == "__main__":
    if sys.argv[1] == "carrying":
        carrying(*map(int, sys.argv[2:]))
    else:
        bundle()
