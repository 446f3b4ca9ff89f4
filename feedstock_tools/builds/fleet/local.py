"""A fleet on this machine, to try one out and for tests: a scheduler and some workers, each with its own folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet
from feedstock_tools.errors import WorkError
from feedstock_tools.processes import worker_command

HUB, WORKER = "feedstock_tools.builds.fleet.hub", "feedstock_tools.builds.fleet.worker"
_ENDS_WITHIN = 20.0


#: The variables of this process that those of a fleet see: no credentials are among them.
_PASSED_ON = ("LANG", "LC_ALL", "LOGNAME", "PATH", "PYTHONPATH", "TMPDIR", "USER")


@dataclass
class LocalFleet:
    """The processes of a fleet on this machine.

    Attributes:
        fleet: its private folder; `root` is the folder of all its machines.
        processes: `hub` and the names of the hosts → their processes.
    """

    fleet: FleetFolder
    root: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_hub(self) -> None:
        """Start the hub, at the address of the fleet."""
        self._start("hub", [HUB, str(self.fleet.for_hub), self.fleet.hub])

    def start_host(self, host: str) -> None:
        """Start the worker of a host."""
        self._start(host, [WORKER, str(self.fleet.for_host(host))])

    def end(self, name: str) -> None:
        """Ask a process to end, and wait until it has."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_all(self) -> None:
        """End all processes, the hub last."""
        for process in self.processes.values():
            with suppress(OSError):
                process.terminate()
        for name in list(self.processes):
            self.end(name)

    def home_of(self, host: str) -> Path:
        """The folder in which a host works."""
        return self.root / host

    def _start(self, name: str, command: Sequence[str]) -> None:
        home = self.home_of(name)
        home.mkdir(parents=True, exist_ok=True)
        passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name[:5] == "DASK_"}
        variables = {**passed_on, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        with (home / "messages").open("ab") as messages:
            self.processes[name] = subprocess.Popen(
                worker_command(*command), env=variables, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages
            )


@contextmanager
def local_fleet(
    folder: Path, root: Path, hosts: int, settings: Mapping[str, Any] | None = None
) -> Iterator[LocalFleet]:
    """A running fleet of some hosts on this machine, named `h1` and so on; it ends with the block.

    Args:
        folder: for its private folder, which must not be one yet.
        root: for the folders of its machines.
        settings: of each host; see `read_settings`.

    Raises:
        WorkError: it cannot be started.
    """
    made = LocalFleet(make_fleet(folder, "local", f"127.0.0.1:{free_port()}"), root)
    names = [f"h{number}" for number in range(1, hosts + 1)]
    for name in names:
        add_host(made.fleet, name, {"root": str(made.home_of(name) / "work"), **(settings or {})})
    try:
        made.start_hub()
        for name in names:
            made.start_host(name)
        yield made
    except OSError as error:
        raise WorkError(f"the fleet cannot be started: {error.strerror or error}", path=root) from error
    finally:
        made.end_all()


def free_port() -> int:
    """A port of this machine that nothing listens at now."""
    import socket

    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port
