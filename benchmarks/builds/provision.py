"""Machines made into hosts and given back: how long it takes, and what stays when `up` is broken off (Linux, as root).

    python -m benchmarks.builds.provision times          three bare hosts: up, up again, test, after a reboot, down
    python -m benchmarks.builds.provision roles          a host with all roles: up, up again, test, down
    python -m benchmarks.builds.provision roles docker   the same with docker in place of podman, under systemd
    python -m benchmarks.builds.provision ansible 1/3    a host with all roles: `fleet up` killed at each task (at the
                                                         1st, 4th, 7th, … of them; or at those named: 21,24), then
                                                         `fleet down`
    python -m benchmarks.builds.provision script 1/3     the same with the script of the host
    python -m benchmarks.builds.provision units          a host with systemd: killed at each task of its services

It needs `python -m maintenance.host_root`, and a package index for the wheels, which are not part of the times. Where
`up` is killed, small wheels stand for this program and for NumPy.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.provision.hosts import check, down, up, write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory, read_inventory
from feedstock_tools.builds.fleet.provision.wheelhouse import Target, wheelhouse
from maintenance.host_root import debs_of, root_folder
from tests.support.command import tool
from tests.support.hosts import BareHost, bare_hosts, why_no_hosts
from tests.support.light_wheels import light_wheels
from tests.support.listings import Listing, differences
from tests.support.provisioned import client_of, inventory_of, provisioned
from tests.support.systemd_host import systemd_host, why_no_systemd_host

_CACHE = Path("/var/tmp/feedstock-tools/cache")  # noqa: S108 - kept for the next time
_NUMPY = "1.26.4"
_SHELL = {"fleet_supervisor": "shell"}
#: Each role and each of its steps, but those of units.
_ROLES: Mapping[str, Any] = {
    **_SHELL,
    "fleet_runs_hub": True,
    "fleet_container": "podman",
    "fleet_toolchain": ["compilers", "openblas", "fftw", "hdf5"],
    "fleet_bazel": "6.1.0",
    "fleet_bazel_file": "bazel",
    "fleet_numpy": _NUMPY,
    "fleet_debs": str(debs_of(root_folder())),
}
#: What of the distribution's packages FFTW and podman do not need: each round is shorter without it.
_OF_OTHERS = re.compile(r"gcc|g\+\+|gfortran|cpp|lib(gcc-12|.*san|openblas|hdf5|stdc\+\+-12)|docker|containerd_|runc")
_STEP = re.compile(r"\s*(base|container|toolchain|hub|worker) ?: ")
_OF_SERVICE = re.compile(r"\s*(hub|worker) : (Write the unit|Restart|Run the service)")
#: The private folders of systemd's own services, named anew at each start, and what its timer copies at midnight.
_OF_SYSTEMD = re.compile(r"var/tmp/systemd-private-\w+-systemd-|var/backups/")
_ON_HOST = "root/provision"
#: Whether `up` is broken off at a step, by its number.
_Which = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class _Target:
    """A host, the inventory that has it alone, the variables of the client, and what was on the host before."""

    host: BareHost
    inventory: Path
    environment: Mapping[str, str]
    before: Listing

    def read(self) -> Inventory:
        return read_inventory(self.inventory, self.environment)

    def left(self) -> list[str]:
        """The paths in which the host differs from before."""
        found = differences(self.before, self.host.listing())
        return [path for path in found if not path.startswith(_ON_HOST) and not _OF_SYSTEMD.match(path)]


def _times(folder: Path) -> None:
    with provisioned(["h1", "h2", "h3"], folder, _CACHE) as made:
        before = {name: host.listing() for name, host in made.hosts.items()}
        inventory = made.read()
        wheelhouse(Target("3.11", "x86_64"), made.environment, print)
        _timed("up", lambda: up(inventory, made.environment, _quiet))
        _timed("up again", lambda: up(inventory, made.environment, _quiet))
        _timed("test", lambda: check(inventory, made.environment, _quiet)[0])
        _timed("reboot of h1", made.hosts["h1"].reboot)
        _timed("up after it", lambda: up(inventory, made.environment, _quiet))
        _timed("down", lambda: down(inventory, made.environment, _quiet))
        left = {name: differences(before[name], host.listing()) for name, host in made.hosts.items()}
        print(f"left: {left}")


def _all_roles(folder: Path, engine: str) -> None:
    settings = {**_ROLES, "fleet_container": engine}
    if engine == "docker":  # whose daemon is a service
        settings["fleet_supervisor"] = "systemd"
        made = _with_systemd(folder, _CACHE, settings)
    else:
        made = _bare(folder, _CACHE, settings)
    with made as target:
        inventory = target.read()
        _timed("up", lambda: up(inventory, target.environment, _quiet))
        _timed("up again", lambda: up(inventory, target.environment, _quiet))
        for each in check(inventory, target.environment, _quiet)[1]:
            print(f"  {each.check}: {'ok' if each.passed else 'failed'}: {each.found}")
        _timed("down", lambda: down(inventory, target.environment, _quiet))
        print(f"left: {target.left()}")


def _timed(name: str, work: Callable[[], Any]) -> None:
    began = time.monotonic()
    played = work()
    shown = [f"{host.host} changed={host.changed} {host.error or ''}" for host in played or ()]
    print(f"{name}: {time.monotonic() - began:.1f} s  {'; '.join(shown)}", flush=True)


def _quiet(text: str) -> None:
    """Print no progress."""


@contextmanager
def _bare(folder: Path, cache: Path, settings: Mapping[str, Any]) -> Iterator[_Target]:
    """A host whose supervisor is a loop."""
    with bare_hosts(["h1"], folder) as bare:
        yield _target(bare.hosts["h1"], folder, cache, settings)


@contextmanager
def _with_systemd(folder: Path, cache: Path, settings: Mapping[str, Any]) -> Iterator[_Target]:
    """A host with a real systemd."""
    if (reason := why_no_systemd_host()) is not None:
        sys.exit(f"not here: {reason}")
    with systemd_host(f"ft{os.getpid() % 100_000}", folder) as (host, _):
        yield _target(host, folder, cache, {**settings, "ansible_ssh_private_key_file": str(host.key)})


def _target(host: BareHost, folder: Path, cache: Path, settings: Mapping[str, Any]) -> _Target:
    bazel = folder / "bazel"
    bazel.write_text("#!/bin/sh\necho bazel 6.1.0\n")
    bazel.chmod(0o755)
    inventory = folder / "inventory.yml"
    inventory.write_text(inventory_of({"h1": host}, f"{host.address}:8786", settings))
    return _Target(host, inventory, client_of(folder, cache), host.listing())


def _few_debs(folder: Path) -> str:
    made = folder / "debs"
    made.mkdir()
    for path in debs_of(root_folder()).glob("*.deb"):
        if not _OF_OTHERS.match(path.name):
            (made / path.name).symlink_to(path)
    return str(made)


def _by_ansible(folder: Path, which: _Which) -> None:
    """Break off `up` by Ansible: each step is a task."""
    settings = {**_ROLES, "fleet_toolchain": ["fftw"], "fleet_debs": _few_debs(folder)}
    light_wheels(folder, [_NUMPY])
    with _bare(folder, folder, settings) as target:
        _broken_off(
            target, tool("fleet", "up", f"--fleet={target.inventory}"), lambda: _given_back(target), _STEP, which
        )


def _by_units(folder: Path, which: _Which) -> None:
    """Break off `up` under a real systemd, at the tasks of its services."""
    light_wheels(folder)
    with _with_systemd(folder, folder, {"fleet_runs_hub": True}) as target:
        command = tool("fleet", "up", f"--fleet={target.inventory}")
        inventory = target.read()
        _timed("up", lambda: up(inventory, target.environment, _quiet))
        _timed("up again", lambda: up(inventory, target.environment, _quiet))
        _broken_off(target, command, lambda: _given_back(target), _OF_SERVICE, which)


def _given_back(target: _Target) -> None:
    (played,) = down(target.read(), target.environment, _quiet)
    if played.error is not None:
        raise RuntimeError(played.error)


def _by_script(folder: Path, which: _Which) -> None:
    """Break off the script of the host."""
    settings = {**_ROLES, "fleet_toolchain": ["fftw"], "fleet_debs": _few_debs(folder)}
    light_wheels(folder, [_NUMPY])
    with _bare(folder, folder, settings) as target:
        (written,) = write_scripts(target.read(), folder / "scripts", target.environment, _quiet)
        shutil.copytree(written, target.host.root / _ON_HOST)
        script = ["ssh", *target.host.ssh_options, f"root@{target.host.address}", f"bash /{_ON_HOST}/provision.sh"]

        def given_back() -> None:
            subprocess.run([*script, "down"], check=True, capture_output=True)

        _broken_off(target, [*script, "up"], given_back, _STEP, which)


def _broken_off(
    target: _Target,
    command: Sequence[str],
    give_back: Callable[[], None],
    wanted: re.Pattern[str],
    which: _Which,
) -> None:
    """Break `up` off at its steps, on a host that is given back each time."""
    run = subprocess.run(
        command, env=dict(target.environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if run.returncode != 0:
        sys.exit(run.stdout)
    lines = [line.strip() for line in run.stdout.splitlines()]
    give_back()
    steps = [number for number, line in enumerate(lines) if wanted.match(line)]
    print(f"{len(steps)} steps; left after a whole up and down: {target.left()}", flush=True)
    for number, at in enumerate(steps, 1):
        if not which(number):
            continue
        _killed_at(command, target, at, pause=0.4 * (number % 3))
        there = len(target.left())
        give_back()
        print(f"{number:2} {lines[at]}: {there} differences, after down {target.left()}", flush=True)


def _killed_at(command: Sequence[str], target: _Target, at: int, pause: float) -> None:
    """Kill all of the client's processes after a step has begun; what has begun on the host goes on.

    Args:
        at: the number of the line by which the step says that it begins.
        pause: the seconds from then on.
    """
    with subprocess.Popen(
        command,
        env=dict(target.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        for number, _ in enumerate(process.stdout or ()):
            if number == at:
                break
        time.sleep(pause)
        if "provision.sh" in command[-2]:
            target.host.run("pkill", "-KILL", "-o", "-f", "'provision.sh up'")
        os.killpg(process.pid, signal.SIGKILL)


def main(words: Sequence[str]) -> None:
    """Measure, or break off."""
    if (reason := why_no_hosts()) is not None:
        sys.exit(f"not here: {reason}")
    parts = {"ansible": _by_ansible, "script": _by_script, "units": _by_units}
    with tempfile.TemporaryDirectory() as name:
        match list(words):
            case ["times"]:
                _times(Path(name))
            case ["roles", *engine] if engine in ([], ["podman"], ["docker"]):
                _all_roles(Path(name), *engine or ["podman"])
            case [command, *numbers] if command in parts and len(numbers) < 2:
                parts[command](Path(name), _which(*numbers or ["1/1"]))
            case _:
                sys.exit(str(__doc__))


def _which(numbers: str) -> _Which:
    """Which steps are meant by `1/3`, or by `21,24`."""
    if (part := re.fullmatch(r"(\d+)/(\d+)", numbers)) is not None:
        first, of = int(part[1]), int(part[2])
        return lambda number: number % of == first % of
    if re.fullmatch(r"\d+(,\d+)*", numbers):
        return lambda number: str(number) in numbers.split(",")
    sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
