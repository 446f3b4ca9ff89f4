"""`fleet up`, `down` and `test`, and the script for a machine that Ansible does not reach."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, fleets_root, make_fleet, move_hub, open_fleet
from feedstock_tools.builds.fleet.provision.ansible import SCRIPTS, write_project
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from feedstock_tools.builds.fleet.provision.pins import with_pins
from feedstock_tools.builds.fleet.provision.playing import Played, play
from feedstock_tools.builds.fleet.provision.roles import HOST_FILES, HUB_FILES
from feedstock_tools.builds.fleet.provision.script import provision_script
from feedstock_tools.builds.fleet.provision.settings import Plan
from feedstock_tools.builds.fleet.provision.steps import Values
from feedstock_tools.builds.fleet.provision.values import Payload, host_settings, values_of
from feedstock_tools.builds.fleet.provision.wheelhouse import Archive, Target, archive_of, wheelhouse
from feedstock_tools.data import cache_root
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import remove

_PROJECT = "provision"
Tell = Callable[[str], None]
Environment = Mapping[str, str]


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
    """Make the machines of an inventory hosts of its fleet; what is so already stays unchanged.

    Raises:
        InputError: the fleet, or a file or a recipe that an inventory names, cannot be used.
        WorkError: the wheels cannot be made, or a file cannot be written.
    """
    inventory = _pinned(inventory)
    fleet = _fleet_of(inventory, environment)
    with locked(fleet.path):
        hosts = _all_values(inventory, fleet, environment, tell)
        return _played(inventory, fleet, hosts, "up", environment, tell)


def down(inventory: Inventory, environment: Environment, tell: Tell) -> list[Played]:
    """Remove all that `up` has made on hosts, also if it was interrupted, and their certificates here.

    With its last host the fleet goes, too: the next `up` makes another authority, so that nobody can use a certificate
    that stayed on a disk.

    Raises:
        WorkError: a file cannot be written.
    """
    fleet = _fleet_of(inventory, environment)
    with locked(fleet.path):
        played = _played(inventory, fleet, _bare_values(inventory, fleet), "down", environment, tell)
        for host in played:
            if host.error is None:
                remove(fleet.for_host(host.host))
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
        played = _played(inventory, fleet, _bare_values(inventory, fleet), "test", environment, tell)
        tests = [test for host in played if host.error is None for test in _tested(fleet, host.host)]
    return played, tests


def write_scripts(inventory: Inventory, folder: Path, environment: Environment, tell: Tell) -> list[Path]:
    """Write a folder for each host with its script, and the files that the script needs; returns the folders.

    Raises:
        InputError, WorkError: as for `up`.
    """
    inventory = _pinned(inventory)
    fleet = _fleet_of(inventory, environment)
    folders = []
    with locked(fleet.path):
        for plan in inventory.hosts:
            payload = _payload(plan, inventory, environment, tell)
            own = folder / plan.name
            own.mkdir(parents=True, exist_ok=True, mode=0o700)
            role_folders = _role_folders(plan, fleet)
            beside = _laid_out(own, plan, inventory, payload, role_folders)
            values = _values(beside, plan, fleet, {role: role for role in role_folders}, _digest(plan, fleet))
            bazel = {"fleet_bazel_file": "bazel"} if plan.bazel else {}
            write_whole(own / "provision.sh", provision_script({**values, **bazel}, __version__))
            folders.append(own)
    return folders


def _laid_out(
    own: Path, plan: Plan, inventory: Inventory, payload: Payload, role_folders: Mapping[str, Path]
) -> Payload:
    """Copy what a script sends into its folder; the payload by its names there."""
    shutil.copyfile(payload.wheelhouse, own / "wheelhouse.tar")
    if payload.debs:
        shutil.copyfile(payload.debs, own / "debs.tar")
    if plan.bazel:
        shutil.copyfile(_bazel(plan, inventory), own / "bazel")
    for role, files in _FILES.items():
        if role != "hub" or plan.is_hub:
            (own / role).mkdir(exist_ok=True, mode=0o700)
            for file in files:
                shutil.copy(role_folders[role] / file, own / role / file)
    return replace(payload, wheelhouse="wheelhouse.tar", debs="debs.tar" if payload.debs else "")


_FILES = {"worker": HOST_FILES, "hub": HUB_FILES}


def _pinned(inventory: Inventory) -> Inventory:
    """The inventory with the versions that recipes pin; `down` needs none, so that it works without the feedstock."""
    return replace(inventory, hosts=tuple(with_pins(plan, inventory.path) for plan in inventory.hosts))


def _fleet_of(inventory: Inventory, environment: Environment) -> FleetFolder:
    """The private folder of an inventory's fleet; made if it is missing, with its hub where the inventory says."""
    path = fleets_root(environment) / inventory.fleet
    if not (path / "fleet.json").is_file():
        return make_fleet(path, inventory.fleet, inventory.hub)
    return move_hub(open_fleet(path), inventory.hub)


def _all_values(inventory: Inventory, fleet: FleetFolder, environment: Environment, tell: Tell) -> dict[str, Values]:
    values_of_hosts: dict[str, Values] = {}
    for plan in inventory.hosts:
        payload = _payload(plan, inventory, environment, tell)
        role_folders = {role: str(path) for role, path in _role_folders(plan, fleet).items()}
        values = _values(payload, plan, fleet, role_folders, _digest(plan, fleet))
        bazel = {"fleet_bazel_file": str(_bazel(plan, inventory))} if plan.bazel else {}
        values_of_hosts[plan.name] = {**values, **bazel}
    return values_of_hosts


def _bare_values(inventory: Inventory, fleet: FleetFolder) -> dict[str, Values]:
    """The values for `down` and `test`, which send nothing."""
    role_folders = dict.fromkeys(_FILES, "")
    return {plan.name: _values(Payload("", ""), plan, fleet, role_folders, "") for plan in inventory.hosts}


def _values(payload: Payload, plan: Plan, fleet: FleetFolder, role_folders: Mapping[str, str], digest: str) -> Values:
    return values_of(plan, fleet.name, payload, dict(role_folders), digest, __version__)


def _role_folders(plan: Plan, fleet: FleetFolder) -> dict[str, Path]:
    """Role → the folder of what a host gets for it; made if it is missing."""
    return {"worker": add_host(fleet, plan.name, host_settings(plan)), "hub": fleet.for_hub}


def _digest(plan: Plan, fleet: FleetFolder) -> str:
    return digest_of_files([fleet.for_host(plan.name), *([fleet.for_hub] if plan.is_hub else [])])[:16]


def _payload(plan: Plan, inventory: Inventory, environment: Environment, tell: Tell) -> Payload:
    if plan.bazel:
        _bazel(plan, inventory)
    cache = cache_root(environment)
    debs = _debs(plan, inventory, cache) if plan.debs else None
    wheels = wheelhouse(Target(plan.python, plan.machine, plan.numpy), environment, tell)
    packages = (str(debs.path), debs.digest[:16]) if debs else ("", "")
    return Payload(str(wheels.path), wheels.digest[:16], *packages)


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
    inventory: Inventory,
    fleet: FleetFolder,
    hosts: Mapping[str, Values],
    playbook: str,
    environment: Environment,
    tell: Tell,
) -> list[Played]:
    folder = fleet.path / _PROJECT
    scripts = {host: provision_script(values, __version__) for host, values in hosts.items()}
    write_project(folder, hosts, scripts)
    return play(folder, playbook, inventory.path, list(hosts), environment, tell)


def _tested(fleet: FleetFolder, host: str) -> list[Tested]:
    text = (fleet.path / _PROJECT / SCRIPTS / f"{host}.test").read_text(encoding="utf-8")
    rows = [line.split("\t", 2) for line in text.splitlines() if line.count("\t") >= 2]
    return [Tested(host, check, word == "ok", found) for word, check, found in rows]
