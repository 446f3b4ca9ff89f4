"""Hosts of a fleet as machines of their own on this one: own root, address, process space and name (Linux, as root).

The root of each is this machine's with a layer of its own above it. A cut link is the end of its network, and the death
of its first process that of the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet
from feedstock_tools.builds.fleet.local import HUB, WORKER
from feedstock_tools.processes import worker_command
from tests.support.fleets import wait_for_hosts
from tests.support.namespaces import kill_first, network, overlay, run, scratch, started

#: Where a host has its certificate, and where it works.
_GIVEN, ROOT_OF_HOST = "/etc/feedstock-tools-host", "/var/lib/feedstock-tools"
_FIRST = 'hostname {name} && mount -t proc proc /proc && exec "$@"'


@dataclass
class Machine:
    """A host: its root as this machine sees it, its interface, and the process that made its spaces."""

    name: str
    root: Path
    interface: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def work(self) -> Path:
        """Where it works, as this machine sees it."""
        return self.root / ROOT_OF_HOST.lstrip("/")

    def cut(self) -> None:
        """Cut its link."""
        run("ip", "link", "set", self.interface, "down")

    def heal(self) -> None:
        """Mend its link."""
        run("ip", "link", "set", self.interface, "up")

    def kill(self) -> None:
        """Kill its first process, and with it all others."""
        assert self.process is not None
        kill_first(self.process)

    def processes(self) -> dict[int, str]:
        """Its processes by their numbers here, each with the folder that it works in."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if os.readlink(entry / "root") == str(self.root):  # noqa: PTH115
                        found[int(entry.name)] = os.readlink(entry / "cwd")  # noqa: PTH115
        return found

    def builds(self) -> list[int]:
        """Its processes that work below its folder of rows, by their numbers here."""
        return [number for number, here in self.processes().items() if "/rows/" in f"{here}/"]


@dataclass
class Machines:
    """A fleet of such hosts; its hub runs on this machine."""

    fleet: FleetFolder
    machines: dict[str, Machine] = field(default_factory=dict)
    hub: subprocess.Popen[bytes] | None = None

    def wait_for(self, hosts: int) -> None:
        """Wait until a number of hosts are present."""
        wait_for_hosts(self.fleet, hosts)


@contextmanager
def machines_in(folder: Path, names: Sequence[str], silent: float, *, jobs: int = 1) -> Iterator[Machines]:
    """Running hosts that have connected to a hub on this machine; all is gone after the block.

    Args:
        folder: for the private folder of the fleet.
        names: of the hosts.
        silent: how long a host may be silent before its rows begin elsewhere, in seconds.
    """
    with ExitStack() as stack:
        layers = stack.enter_context(scratch("machines"))
        links = stack.enter_context(network())
        made = Machines(make_fleet(folder / "fleet", "machines", f"{links.here}:8786"))
        made.hub = subprocess.Popen(
            worker_command(HUB, str(made.fleet.for_hub), made.fleet.hub),
            stdout=subprocess.DEVNULL,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{silent}s"},
        )
        stack.callback(_end, made.hub)
        for at, name in enumerate(names, 11):
            root = stack.enter_context(overlay(layers / name, Path("/")))
            given = add_host(made.fleet, name, {"root": ROOT_OF_HOST, "jobs": jobs})
            shutil.copytree(given, root / _GIVEN.lstrip("/"))
            space, interface, _ = links.link(at)
            made.machines[name] = Machine(name, root, interface)
            _start(made.machines[name], space)
            stack.callback(made.machines[name].kill)
        made.wait_for(len(names))
        yield made


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _start(machine: Machine, space: str) -> None:
    first = ["/bin/sh", "-c", _FIRST.format(name=machine.name), "first", *worker_command(WORKER, _GIVEN)]
    variables = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
    with (machine.root / "var" / "log" / "worker").open("wb") as messages:
        machine.process = started(space, machine.root, first, variables, messages)
