"""Hosts of a fleet as machines of their own on this one: own root, address, process space and name (Linux, as root).

The root of each is this machine's with a layer of its own above it. A cut link is the end of its network, and the death
of its first process that of the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet
from feedstock_tools.builds.fleet.local import HUB, WORKER
from feedstock_tools.workers import worker_command
from tests.support.fleets import wait_for_hosts

__all__ = ["Machine", "Machines", "machines_in", "why_no_machines"]

#: Where a host has its certificate, and where it works.
_GIVEN, ROOT_OF_HOST = "/etc/feedstock-tools-host", "/var/lib/feedstock-tools"
_FIRST = 'hostname {name} && mount -t proc proc /proc && ip link set lo up && exec "$@"'


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
        _run("ip", "link", "set", self.interface, "down")

    def heal(self) -> None:
        """Mend its link."""
        _run("ip", "link", "set", self.interface, "up")

    def kill(self) -> None:
        """Kill its first process, and with it all others."""
        assert self.process is not None
        for pid in _children(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def builds(self) -> list[int]:
        """The processes that work below its folder of rows, by their numbers here."""
        assert self.process is not None
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    inside = os.readlink(entry / "root") == str(self.root)  # noqa: PTH115
                    here = os.readlink(entry / "cwd")  # noqa: PTH115
                    if inside and "/rows/" in f"{here}/":
                        found.append(int(entry.name))
        return found


@dataclass
class Machines:
    """A fleet of such hosts; its hub runs on this machine."""

    fleet: FleetFolder
    machines: dict[str, Machine] = field(default_factory=dict)
    hub: subprocess.Popen[bytes] | None = None

    def wait_for(self, hosts: int) -> None:
        """Wait until a number of hosts are present."""
        wait_for_hosts(self.fleet, hosts)


@cache
def why_no_machines() -> str | None:
    """Why this user cannot make such hosts; None if it can."""
    if os.geteuid() != 0:
        return "it is not root"
    for program in ("ip", "unshare", "chroot", "mount", "hostname"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    folder = Path("/dev/shm") / f"ft-try-{os.getpid()}"
    try:
        with _overlay(folder):
            pass
        _run("unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--net", "true")
        _run("ip", "link", "add", f"ftt{os.getpid() % 100_000}", "type", "bridge")
        _run("ip", "link", "delete", f"ftt{os.getpid() % 100_000}")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"namespaces are not allowed: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


@contextmanager
def machines_in(folder: Path, names: Sequence[str], *, lease: float, jobs: int = 1) -> Iterator[Machines]:
    """Running hosts that have connected to a hub on this machine; all is gone after the block.

    Args:
        folder: for the private folder of the fleet.
    """
    number = os.getpid() % 200 + 20
    bridge, subnet = f"ftbr{number}", f"10.77.{number}"
    made = Machines(make_fleet(folder / "fleet", "machines", f"{subnet}.1:8786"))
    base = Path("/dev/shm") / f"ft-machines-{os.getpid()}"
    overlays = []
    try:
        _run("ip", "link", "add", bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{subnet}.1/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        made.hub = subprocess.Popen(
            worker_command(HUB, str(made.fleet.for_hub), made.fleet.hub), stdout=subprocess.DEVNULL
        )
        for at, name in enumerate(names, 11):
            overlay = _overlay(base / name)
            root = overlay.__enter__()
            overlays.append(overlay)
            given = add_host(made.fleet, name, {"root": ROOT_OF_HOST, "lease": lease, "jobs": jobs})
            shutil.copytree(given, root / _GIVEN.lstrip("/"))
            made.machines[name] = Machine(name, root, f"ftv{number}-{at}")
            _start(made.machines[name], bridge, f"{subnet}.{at}", f"fth{number}-{at}")
        made.wait_for(len(names))
        yield made
    finally:
        _remove(made, bridge, [f"fth{number}-{at}" for at in range(11, 11 + len(names))])
        for overlay in overlays:
            overlay.__exit__(None, None, None)
        shutil.rmtree(base, ignore_errors=True)


def _start(machine: Machine, bridge: str, address: str, space: str) -> None:
    _run("ip", "netns", "add", space)
    _run("ip", "link", "add", machine.interface, "type", "veth", "peer", "name", "eth0", "netns", space)
    _run("ip", "link", "set", machine.interface, "master", bridge, "up")
    _run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
    _run("ip", "-n", space, "link", "set", "eth0", "up")
    spaces = ("--pid", "--fork", "--mount", "--uts", "--ipc", "--kill-child", "--propagation", "private")
    first = ["/bin/sh", "-c", _FIRST.format(name=machine.name), "first", *worker_command(WORKER, _GIVEN)]
    variables = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
    with (machine.root / "var" / "log" / "worker").open("wb") as messages:
        machine.process = subprocess.Popen(
            ["ip", "netns", "exec", space, "unshare", *spaces, "chroot", str(machine.root), *first],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
        )


def _remove(made: Machines, bridge: str, spaces: Sequence[str]) -> None:
    for machine in made.machines.values():
        if machine.process is not None and machine.process.poll() is None:
            machine.kill()
    if made.hub is not None:
        made.hub.kill()
        made.hub.wait()
    for command in (*(("netns", "delete", space) for space in spaces), ("link", "delete", bridge)):
        subprocess.run(["ip", *command], check=False, capture_output=True)


@contextmanager
def _overlay(folder: Path) -> Iterator[Path]:
    """This machine's root with a layer of its own above it, mounted in a folder."""
    upper, work, root = folder / "upper", folder / "work", folder / "root"
    for each in (upper, work, root):
        each.mkdir(parents=True)
    _run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", str(root))
    try:
        _run("mount", "--bind", "/dev", str(root / "dev"))
        _run("mount", "-t", "tmpfs", "tmpfs", str(root / "dev/shm"))
        yield root
    finally:
        for place in (root / "dev" / "shm", root / "dev", root):
            for _ in range(20):
                if subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
