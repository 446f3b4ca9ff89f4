"""A bare host whose first process is systemd, so that units, reboots and limits are real (Linux, as root).

systemd-nspawn starts it: that of `python -m maintenance.host_root`, else the one on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from maintenance.host_root import nspawn_of, root_folder
from tests.support.hosts import BareHost, prepare, why_no_hosts
from tests.support.namespaces import Network, network, overlay, run, scratch

#: What gives the host its address at each start, as a cloud's image does.
_ADDRESS = """[Unit]
Before=ssh.service

[Service]
Type=oneshot
ExecStart=/sbin/ip addr add {address}/24 dev host0
ExecStart=/sbin/ip link set host0 up

[Install]
WantedBy=multi-user.target
"""
#: The status with which systemd-nspawn asks to be started again: systemd-nspawn(1).
_REBOOTS = 133


@dataclass
class SystemdHost(BareHost):
    """Such a host. `space` is the bridge that it is linked to."""

    def boot(self) -> None:
        """Start it, and wait until it answers SSH."""
        options = ("--quiet", "--register=no", "--keep-unit", "--boot", "--link-journal=no")
        where = (f"--directory={self.root}", f"--machine={self.name}", f"--network-bridge={self.space}")
        with self.messages.open("ab") as messages:
            self.process = subprocess.Popen(
                [str(_nspawn()), *options, *where],
                env={"PATH": os.environ["PATH"], "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
            )
        self.wait_for_ssh()

    def reboot(self) -> None:
        """Restart it by systemd, and wait until it answers SSH again."""
        assert self.process is not None
        self.run("systemctl", "reboot")
        assert self.process.wait(120) == _REBOOTS
        self.boot()


@cache
def why_no_systemd_host() -> str | None:
    """Why there can be no such host here; None if there can."""
    if (reason := why_no_hosts()) is not None:
        return reason
    return None if _nspawn() else "there is no systemd-nspawn; `python -m maintenance.host_root` fetches it"


@contextmanager
def systemd_host(name: str, folder: Path) -> Iterator[tuple[SystemdHost, Network]]:
    """A running host, and the network that it shares with this machine; both are gone after the block.

    Args:
        name: up to 12 characters.
        folder: for its key and messages.
    """
    with ExitStack() as stack:
        layers, links = stack.enter_context(scratch("systemd")), stack.enter_context(network())
        root = stack.enter_context(overlay(layers / name, root_folder(), devices=False))
        key = folder / "ssh-key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        prepare(root, name, key.with_suffix(".pub").read_text())
        address = f"{links.subnet}.31"
        units = root / "etc/systemd/system"
        (units / "address.service").write_text(_ADDRESS.format(address=address))
        (units / "multi-user.target.wants").mkdir(exist_ok=True)
        (units / "multi-user.target.wants" / "address.service").symlink_to("../address.service")
        host = SystemdHost(
            name, root, layers / name / "upper", address, links.bridge, f"vb-{name}", key, folder / f"{name}.messages"
        )
        stack.callback(host.kill)
        host.boot()
        yield host, links


def _nspawn() -> Path | None:
    fetched = nspawn_of(root_folder())
    found = str(fetched) if fetched.is_file() else shutil.which("systemd-nspawn")
    return Path(found) if found else None
