"""`feedstock-tools fleet up`, `down`, `test` and `wheelhouse`: machines that become hosts, and are given back."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.fleet_extra import inventory_of, refuse_without_extra
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.errors import InputError, WorkError

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.provision.inventory import Inventory
    from feedstock_tools.builds.fleet.provision.playing import Played

_NAMES = click.argument("hosts", nargs=-1, metavar="[HOST]...")
_FLEET = options.fleet("inventory.yml")
_MACHINES = options.option(
    "--machines",
    metavar="PROGRAM",
    meaning="Program that makes and ends the machines: PROGRAM up|down FLEET",
)


@click.command("up", cls=Command, short_help="Make the machines of an inventory hosts of a fleet.")
@_NAMES
@_FLEET
@_MACHINES
@options.option(
    "--script",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    meaning="Write the same steps as a script for each host, with its files, and do nothing else",
)
def up(hosts: tuple[str, ...], fleet: str | None, machines: str | None, script: Path | None) -> int:
    """Install this program, a worker and what builds need on the hosts of an inventory; all of them without HOST.

    A second `up` changes nothing. It runs Ansible, which reaches the hosts by SSH.
    """
    from feedstock_tools.builds.fleet.provision.hosts import up as provide
    from feedstock_tools.builds.fleet.provision.hosts import write_scripts

    tidy()
    _called(machines, "up", fleet)
    chosen = _chosen(fleet, hosts)
    if script is not None:
        for folder in write_scripts(chosen, script, os.environ, say):
            say(f"Wrote {folder}. Copy it to the machine, and run there as root: bash provision.sh up")
        return 0
    return _report(provide(chosen, os.environ, _progress), "up")


@click.command("down", cls=Command, short_help="Remove all that `up` has made on hosts.")
@_NAMES
@_FLEET
@_MACHINES
def down(hosts: tuple[str, ...], fleet: str | None, machines: str | None) -> int:
    """End the builds on the hosts and remove all that `up` has made there, also after an `up` that was interrupted.

    Packages that the client has not fetched yet are lost.
    """
    from feedstock_tools.builds.fleet.provision.hosts import down as remove

    chosen = _chosen(fleet, hosts)
    status = _report(remove(chosen, os.environ, _progress), "down")
    if status == 0:
        _called(machines, "down", fleet)
    return status


@click.command("test", cls=Command, short_help="Try what builds need on the hosts.")
@_NAMES
@_FLEET
@options.as_json
def test(hosts: tuple[str, ...], fleet: str | None, as_json: bool) -> int:
    """Try on each host a hello-world, its service, compilers, libraries and GPUs, as its inventory switches them on."""
    from feedstock_tools.builds.fleet.provision.hosts import check
    from feedstock_tools.wording import table

    played, tests = check(_chosen(fleet, hosts), os.environ, _quiet if as_json else _progress)
    if as_json:
        found = [{"host": each.host, "check": each.check, "passed": each.passed, "found": each.found} for each in tests]
        say_json({"checks": found, "failed": {host.host: host.error for host in played if host.error is not None}})
    else:
        rows = [(each.host, each.check, "ok" if each.passed else "failed", each.found) for each in tests]
        say(table(("host", "check", "result", "found"), rows))
        _report(played, "test")
    return 0 if all(each.passed for each in tests) and all(host.error is None for host in played) else 1


@click.command("wheelhouse", cls=Command, short_help="Fetch the wheels that hosts install.")
@options.option(
    "--python", metavar="VERSION", default="3.11", meaning="Version of Python, such as 3.11", default_text="3.11"
)
@options.option("--machine", metavar="NAME", meaning="Machine of the hosts, such as aarch64", default_text="this one's")
@options.option("--numpy", metavar="VERSION", default="", meaning="Version of NumPy for the role toolchain")
def wheelhouse(python: str, machine: str | None, numpy: str) -> None:
    """Fetch this program at this version, and all that it needs on hosts, into the user's cache, and print the archive.

    `up` does it by itself. Afterwards it needs no package index.
    """
    from feedstock_tools.builds.fleet.provision.wheelhouse import Target
    from feedstock_tools.builds.fleet.provision.wheelhouse import wheelhouse as fetched

    tidy()
    target = Target(python, machine or platform.machine(), numpy)
    say(str(fetched(target, os.environ, lambda text: say(text, err=True)).path))


COMMANDS = (up, down, test, wheelhouse)


def _chosen(fleet: str | None, hosts: Sequence[str]) -> Inventory:
    from feedstock_tools.builds.fleet.provision.hosts import chosen_hosts
    from feedstock_tools.builds.fleet.provision.inventory import read_inventory

    refuse_without_extra()
    return chosen_hosts(read_inventory(inventory_of(fleet), os.environ), hosts)


def _called(machines: str | None, command: str, fleet: str | None) -> None:
    """Call the program that makes machines, if there is one.

    Raises:
        InputError: there is no such program.
        WorkError: it failed.
    """
    if machines is None:
        return
    from feedstock_tools.builds.fleet.folder import fleet_name

    path = Path(machines)
    program = str(path.absolute()) if path.is_file() else shutil.which(machines)
    if program is None:
        raise InputError("there is no such program", path=path, hint="--machines takes a program's name or path.")
    command_line = [sys.executable, program] if program.endswith(".py") else [program]
    ended = subprocess.run([*command_line, command, fleet_name(inventory_of(fleet))], check=False)
    if ended.returncode != 0:
        raise WorkError(f"`{machines} {command}` ended with status {ended.returncode}")


def _progress(text: str) -> None:
    say(f"  {text}", err=True)


def _quiet(text: str) -> None:
    """Print nothing."""


def _report(played: Sequence[Played], command: str) -> int:
    for host in played:
        said = "given back" if command == "down" else f"changed={host.changed}"
        done = said if host.error is None else f"failed: {host.error}"
        if command != "test" or host.error is not None:
            say(f"{host.host}: {done}")
    failed = sum(host.error is not None for host in played)
    if failed and command != "test":
        say(f"{failed} of {len(played)} hosts failed. Run `feedstock-tools fleet {command}` again: it continues there.")
    return 1 if failed else 0
