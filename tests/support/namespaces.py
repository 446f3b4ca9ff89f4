"""Machines on this machine: overlays as roots, network namespaces on a bridge as their network (Linux, as root)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

_SPACES = ("--pid", "--fork", "--mount", "--uts", "--ipc", "--kill-child", "--propagation", "private")


class Network:
    """A bridge on this machine, and the namespaces that are linked to it. No machine reaches anything beyond it.

    Attributes:
        subnet: the first three parts of its addresses; this machine has the last part 1.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.bridge, self.subnet = f"ftbr{number}", f"10.77.{number}"
        self._spaces: list[str] = []

    @property
    def here(self) -> str:
        """This machine's address."""
        return f"{self.subnet}.1"

    def link(self, at: int) -> tuple[str, str, str]:
        """Make a namespace with the address `subnet.at`: its name, its interface on this side, and the address."""
        space, interface, address = f"fth{self.number}-{at}", f"ftv{self.number}-{at}", f"{self.subnet}.{at}"
        run("ip", "netns", "add", space)
        self._spaces.append(space)
        run("ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", space)
        run("ip", "link", "set", interface, "master", self.bridge, "up")
        run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", space, "link", "set", "eth0", "up")
        run("ip", "-n", space, "link", "set", "lo", "up")
        return space, interface, address

    def open(self) -> None:
        """Make the bridge."""
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.here}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def close(self) -> None:
        """Remove the namespaces and the bridge."""
        for command in (*(("netns", "delete", space) for space in self._spaces), ("link", "delete", self.bridge)):
            subprocess.run(["ip", *command], check=False, capture_output=True)


@contextmanager
def network() -> Iterator[Network]:
    """A network of this process, gone after the block."""
    made = Network(os.getpid() % 200 + 20)
    try:
        made.open()
        yield made
    finally:
        made.close()


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A folder in memory for the layers of machines, gone after the block; what is mounted in it stays."""
    folder = Path("/dev/shm") / f"ft-{name}-{os.getpid()}"
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False, capture_output=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of some size, such as `40M`, in a folder."""
    folder.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        run("umount", str(folder))


@contextmanager
def overlay(folder: Path, lower: Path, *, devices: bool = True) -> Iterator[Path]:
    """A root with a layer of its own above it, mounted in a folder, with this machine's devices or none."""
    upper, work, root = folder / "upper", folder / "work", folder / "root"
    for each in (upper, work, root):
        each.mkdir(parents=True)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", str(root))
    try:
        if devices:
            run("mount", "--bind", "/dev", str(root / "dev"))
            run("mount", "-t", "tmpfs", "tmpfs", str(root / "dev/shm"))
        yield root
    finally:
        for place in (*((root / "dev" / "shm", root / "dev") if devices else ()), root):
            _unmount(place)


def _unmount(place: Path) -> None:
    """Unmount it once the processes that were killed have left it; after 2 s, leave it to the last of them."""
    for _ in range(20):
        if subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", "--lazy", str(place))


def started(
    space: str, root: Path, command: Sequence[str], variables: Mapping[str, str], messages: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the first process of a machine, in a network namespace and in spaces of its own below its root."""
    return subprocess.Popen(
        ["ip", "netns", "exec", space, "unshare", *_SPACES, "chroot", str(root), *command],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=messages,
        stderr=messages,
    )


def kill_first(process: subprocess.Popen[bytes]) -> None:
    """Kill the first process of a machine, and with it all others."""
    if process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in map(int, children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


@cache
def why_no_namespaces() -> str | None:
    """Why this user cannot make such machines; None if it can."""
    if os.geteuid() != 0:
        return "it is not root"
    for program in ("ip", "unshare", "chroot", "mount", "hostname"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    bridge = f"ftt{os.getpid() % 100_000}"
    try:
        with scratch("try") as folder, overlay(folder, Path("/")):
            run("unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--net", "true")
            run("ip", "link", "add", bridge, "type", "bridge")
            run("ip", "link", "delete", bridge)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"namespaces are not allowed: {error}"
    return None


def run(*command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True, capture_output=True, timeout=60)
