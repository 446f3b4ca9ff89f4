"""Bare hosts to provision, on this machine: a fresh Debian, with SSH, that reaches no package source (Linux, as root).

Unlike those of `machines`, they have nothing of this machine. The root that lies below theirs comes from
`python -m maintenance.host_root`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from maintenance.host_root import debs_of, root_folder
from tests.support.listings import Listing, listing_of
from tests.support.namespaces import kill_first, network, overlay, run, scratch, small_disk, started, why_no_namespaces
from tests.support.waiting import wait_until

#: As Debian's init would prepare it: names, /proc, an empty /run, and the server.
_FIRST = (
    "hostname {name} && mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mkdir -p /run/sshd /run/lock"
    " && exec /usr/sbin/sshd -D -e"
)


@dataclass
class BareHost:
    """A host: its root as this machine sees it, its address, and the process that made its spaces.

    Attributes:
        layer: what of the root is its own, above that of a fresh host.
    """

    name: str
    root: Path
    layer: Path
    address: str
    space: str
    interface: str
    key: Path
    messages: Path
    process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Start it, and wait until it answers SSH."""
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        with self.messages.open("ab") as messages:
            first = ["/bin/sh", "-c", _FIRST.format(name=self.name)]
            self.process = started(self.space, self.root, first, variables, messages)
        self.wait_for_ssh()

    def wait_for_ssh(self, seconds: float = 60) -> None:
        """Wait until it answers SSH."""
        wait_until(lambda: self.run("true").returncode == 0, seconds)

    def reboot(self) -> None:
        """Kill its first process, and start it again."""
        self.kill()
        self.boot()

    def kill(self) -> None:
        """Kill its first process, and with it all others."""
        if self.process is not None:
            kill_first(self.process)

    def cut(self) -> None:
        """Cut its link."""
        run("ip", "link", "set", self.interface, "down")

    def heal(self) -> None:
        """Mend its link."""
        run("ip", "link", "set", self.interface, "up")

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command on it as root through SSH, whatever its status."""
        return subprocess.run(
            ["ssh", *self.ssh_options, f"root@{self.address}", *command],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    @property
    def ssh_options(self) -> list[str]:
        """The options of `ssh` that reach it without questions."""
        known = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5")
        return ["-F", "/dev/null", "-i", str(self.key), "-o", "BatchMode=yes", *(f"-o{each}" for each in known)]

    def listing(self) -> Listing:
        """What it has that a fresh host has not, but for the system's own logs, caches and backups."""
        return listing_of(self.root, self.layer, root_folder())


@dataclass
class BareHosts:
    """Hosts on a network of their own.

    Attributes:
        here: the address of this machine, for a hub.
        debs: a folder with the packages that the roles install, since hosts reach no package source.
    """

    here: str
    key: Path
    debs: Path
    hosts: dict[str, BareHost] = field(default_factory=dict)


@cache
def why_no_hosts() -> str | None:
    """Why such hosts cannot be made here; None if they can."""
    if (reason := why_no_namespaces()) is not None:
        return reason
    if not (root_folder() / "usr/sbin/sshd").exists():
        return f"no root of a fresh host in {root_folder()}; `python -m maintenance.host_root` makes it"
    return None


@contextmanager
def bare_hosts(names: Sequence[str], folder: Path, disks: Mapping[str, str] | None = None) -> Iterator[BareHosts]:
    """Running hosts that answer SSH; all is gone after the block.

    Args:
        folder: for their key and messages.
        disks: names of hosts with little room for what a fresh host has not: how much, such as `40M`.
    """
    with ExitStack() as stack:
        layers, links = stack.enter_context(scratch("hosts")), stack.enter_context(network())
        key = folder / "ssh-key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        made = BareHosts(links.here, key, debs_of(root_folder()))
        for at, name in enumerate(names, 11):
            if disks and name in disks:
                stack.enter_context(small_disk(layers / name, disks[name]))
            root = stack.enter_context(overlay(layers / name, root_folder()))
            prepare(root, name, key.with_suffix(".pub").read_text())
            space, interface, address = links.link(at)
            host = BareHost(
                name, root, layers / name / "upper", address, space, interface, key, folder / f"{name}.messages"
            )
            made.hosts[name] = host
            host.boot()
            stack.callback(host.kill)
        yield made


def prepare(root: Path, name: str, key: str) -> None:
    """What a cloud's first boot does: the name, who may enter."""
    (root / "etc/hostname").write_text(f"{name}\n")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    (root / "root/.ssh/authorized_keys").write_text(key)
