"""The hub of a fleet as a process of its own on this machine, such as a cluster's login node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.certificates import write_private
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.fleet.local import HUB
from feedstock_tools.errors import WorkError
from feedstock_tools.processes import process_lives, start_time, this_machine, worker_command

#: What the commands of clusters need.
_PASSED_ON = re.compile(
    r"(HOME|LANG|LD_LIBRARY_PATH|LOGNAME|PATH|PYTHONPATH|TMPDIR|USER)$|(CONDOR|DASK|LSB|LSF|PBS|SGE|SLURM)_"
)
_PROCESS, _LOG = "hub.process", "hub.log"
_BEGINS_WITHIN = 30.0
_ENDS_WITHIN = 60.0


def hub_variables(machine: Mapping[str, str]) -> dict[str, str]:
    """The variables of this machine's environment that the hub gets, and with it each job."""
    return {name: value for name, value in machine.items() if _PASSED_ON.match(name)}


def answers(fleet: FleetFolder) -> bool:
    """Whether the hub of a fleet answers."""
    try:
        with Link(fleet):
            return True
    except WorkError:
        return False


def ensure_hub(fleet: FleetFolder) -> bool:
    """Start the hub on this machine unless it answers; returns whether it was started.

    Raises:
        WorkError: it does not answer, and cannot be started here.
    """
    if answers(fleet):
        return False
    log = fleet.path / _LOG
    with log.open("wb") as messages:
        process = subprocess.Popen(
            worker_command(HUB, str(fleet.for_hub), fleet.hub),
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            cwd="/",
            env=hub_variables(os.environ),
            start_new_session=True,
        )
    end = time.monotonic() + _BEGINS_WITHIN
    while process.poll() is None and time.monotonic() < end:
        if b"listens" in log.read_bytes():
            content = f"{this_machine()} {process.pid}:{start_time(process.pid)}"
            write_private(fleet.path / _PROCESS, content.encode())
            return True
        time.sleep(0.1)
    process.kill()
    process.wait()
    last_line = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it says nothing"]
    hint = "Set fleet_hub in the inventory to an address of this machine that the compute nodes reach."
    raise WorkError(f"the hub does not answer at {fleet.hub}, and cannot be started here: {last_line[0]}", hint=hint)


def end_hub(fleet: FleetFolder) -> bool:
    """End the hub if it was started on this machine; returns whether it was.

    Raises:
        WorkError: it runs on another machine.
    """
    path = fleet.path / _PROCESS
    machine, _, process = _read(path).partition(" ")
    if not process:
        return False
    if machine != this_machine():
        raise WorkError(f"the hub runs on {machine}", hint=f"Run this command on {machine}.")
    began = time.monotonic()
    lives = bool(process_lives(process, machine))
    if lives:
        with suppress(ProcessLookupError):
            os.kill(int(process.partition(":")[0]), signal.SIGTERM)
    while process_lives(process, machine) and time.monotonic() < began + _ENDS_WITHIN:
        time.sleep(0.1)
    path.unlink(missing_ok=True)
    return lives


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
