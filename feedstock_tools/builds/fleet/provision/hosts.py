"""`fleet up`, `down` and `test`, and the script for a machine that Ansible does not reach."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, fleets_root, make_fleet, move_hub, open_fleet
from feedstock_tools.builds.fleet.provision.ansible import SCRIPTS, write_project
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from feedstock_tools.builds.fleet.provision.pins import with_pins
from feedstock_tools.builds.fleet.provision.playing import Played, play
from feedstock_tools.builds.fleet.provision.script import provision_script
from feedstock_tools.builds.fleet.provision.settings import Plan
from feedstock_tools.builds.fleet.provision.setup import Setup, host_settings
from feedstock_tools.builds.fleet.provision.steps import FILES
from feedstock_tools.builds.fleet.provision.wheelhouse import Archive, Target, archive_of, wheelhouse
from feedstock_tools.data import cache_root
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import remove

_PROJECT, _FOUND = "provision", "unfit.json"
Tell = Callable[[str], None]
Environment = Mapping[str, str]
#: A host, and what is sent to it by the names beside its script.
_Made = tuple[Setup, dict[str, Path]]


@dataclass(frozen=True, slots=True)
class Tested:
    """A check on a host: whether it passed, its name, and what it found."""

    host: str
    check: str
    passed: bool
    found: str


def chosen_hosts(inventory: Inventory, names: Sequence[str]) -> Inventory:
    """The inventory with the named hosts only; with all of them for no name.

    Raises:
        InputError: there is no host with a name.
    """
    known = {plan.name for plan in inventory.hosts}
    if unknown := sorted(set(names) - known):
        hint = f"There are: {', '.join(sorted(known))}."
        raise InputError(f"there is no host {', '.join(unknown)}", path=inventory.path, hint=hint)
    return replace(inventory, hosts=tuple(plan for plan in inventory.hosts if not names or plan.name in names))


def up(inventory: Inventory, environment: Environment, tell: Tell) -> list[Played]:
    """Make the machines of an inventory hosts of its fleet; what is so already stays unchanged."""
    inventory = _pinned(inventory)
    fleet = _fleet_of(inventory, environment)
    with locked(fleet.path):
        made = [_setup(plan, inventory, fleet, environment, tell) for plan in inventory.hosts]
        played = _played(inventory, fleet, made, "up", environment, tell)
        _note(fleet, {host.host: host.error for host in played})
    return played


def down(inventory: Inventory, environment: Environment, tell: Tell) -> list[Played]:
    """Remove all that `up` has made on hosts, also if it was interrupted, and their certificates here.

    With its last host the fleet goes, too: the next `up` makes another authority, so that nobody can use a certificate
    that stayed on a disk.
    """
    fleet = _fleet_of(inventory, environment)
    with locked(fleet.path):
        played = _played(inventory, fleet, _bare(inventory, fleet), "down", environment, tell)
        for host in played:
            if host.error is None:
                remove(fleet.for_host(host.host))
        _note(fleet, {host.host: None for host in played if host.error is None})
        is_last = not fleet.hosts
    if is_last:
        remove(fleet.path)
    return played


def check(inventory: Inventory, environment: Environment, tell: Tell) -> tuple[list[Played], list[Tested]]:
    """Try what builds need on the hosts: this program, compilers, libraries, GPUs.

    Raises:
        InputError: a recipe that an inventory names cannot be used.
        WorkError: a file cannot be written.
    """
    inventory = _pinned(inventory)
    fleet = _fleet_of(inventory, environment)
    with locked(fleet.path):
        played = _played(inventory, fleet, _bare(inventory, fleet), "test", environment, tell)
        tests = [test for host in played if host.error is None for test in _tested(fleet, host.host)]
        wrong = {test.host: f"{test.check}: {test.found}" for test in reversed(tests) if not test.passed}
        _note(fleet, {host.host: host.error or wrong.get(host.host) for host in played})
    return played, tests


def why_unfit(fleet: FleetFolder) -> dict[str, str]:
    """The hosts that the last `up` or `test` found unfit, with the reasons."""
    path = fleet.path / _PROJECT / _FOUND
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _note(fleet: FleetFolder, found: Mapping[str, str | None]) -> None:
    """Note what was found on hosts, for `fleet status`."""
    reasons = {host: reason for host, reason in {**why_unfit(fleet), **found}.items() if reason is not None}
    write_whole(fleet.path / _PROJECT / _FOUND, json.dumps(reasons, indent=1))


def write_scripts(inventory: Inventory, folder: Path, environment: Environment, tell: Tell) -> list[Path]:
    """Write a folder for each host with its script, and the files that the script needs; returns the folders."""
    inventory = _pinned(inventory)
    fleet = _fleet_of(inventory, environment)
    folders = []
    with locked(fleet.path):
        for plan in inventory.hosts:
            setup, files = _setup(plan, inventory, fleet, environment, tell)
            own = folder / plan.name
            for name, path in files.items():
                (own / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                shutil.copy(path, own / name)
            write_whole(own / "provision.sh", provision_script(setup))
            folders.append(own)
    return folders


def _pinned(inventory: Inventory) -> Inventory:
    """The inventory with the versions that recipes pin; `down` needs none, so that it works without the feedstock."""
    return replace(inventory, hosts=tuple(with_pins(plan, inventory.path) for plan in inventory.hosts))


def _fleet_of(inventory: Inventory, environment: Environment) -> FleetFolder:
    """The private folder of an inventory's fleet; made if it is missing, with its hub where the inventory says."""
    path = fleets_root(environment) / inventory.fleet
    if not (path / "fleet.json").is_file():
        return make_fleet(path, inventory.fleet, inventory.hub)
    return move_hub(open_fleet(path), inventory.hub)


def _bare(inventory: Inventory, fleet: FleetFolder) -> list[_Made]:
    """The hosts for `down` and `test`, which send nothing."""
    return [(Setup(plan, fleet.name), {}) for plan in inventory.hosts]


def _setup(plan: Plan, inventory: Inventory, fleet: FleetFolder, environment: Environment, tell: Tell) -> _Made:
    """A host, and what is sent to it; its part of the fleet's private folder is made if it is missing."""
    folders = {
        "worker": add_host(fleet, plan.name, host_settings(plan)),
        **({"hub": fleet.for_hub} if plan.is_hub else {}),
    }
    files = {f"{role}/{name}": path / name for role, path in folders.items() for name in FILES[role]}
    if plan.bazel:
        files["bazel"] = _bazel(plan, inventory)
    debs = _debs(plan, inventory, cache_root(environment)) if plan.debs else None
    wheels = wheelhouse(Target(plan.python, plan.machine, plan.numpy), environment, tell)
    files |= {"wheelhouse.tar": wheels.path, **({"debs.tar": debs.path} if debs else {})}
    digest = digest_of_files(list(folders.values()))[:16]
    return Setup(plan, fleet.name, wheels.digest[:16], debs.digest[:16] if debs else "", digest), files


def _debs(plan: Plan, inventory: Inventory, cache: Path) -> Archive:
    folder = inventory.path.absolute().parent / plan.debs
    if not any(folder.glob("*.deb")):
        raise InputError("fleet_debs is no folder with packages of the distribution (*.deb)", path=folder)
    digest = digest_of_files([folder])
    return archive_of(folder, cache / "fleet" / f"debs-{digest[:16]}.tar")


def _bazel(plan: Plan, inventory: Inventory) -> Path:
    path = inventory.path.absolute().parent / plan.bazel_file
    if not path.is_file():
        raise InputError("fleet_bazel_file is no file", path=path)
    return path


def _played(
    inventory: Inventory, fleet: FleetFolder, made: Sequence[_Made], playbook: str, environment: Environment, tell: Tell
) -> list[Played]:
    folder = fleet.path / _PROJECT
    write_project(folder, [setup for setup, _ in made], {setup.plan.name: files for setup, files in made})
    return play(folder, playbook, inventory.path, [setup.plan.name for setup, _ in made], environment, tell)


def _tested(fleet: FleetFolder, host: str) -> list[Tested]:
    text = (fleet.path / _PROJECT / SCRIPTS / f"{host}.test").read_text(encoding="utf-8")
    rows = [line.split("\t", 2) for line in text.splitlines() if line.count("\t") >= 2]
    return [Tested(host, check, word == "ok", found) for word, check, found in rows]
