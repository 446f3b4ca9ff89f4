"""Inventories: the hosts of a fleet by SSH in YAML, or by the plugin of a cloud, read by Ansible in its process.

all:
  vars: {fleet_hub: "203.0.113.7:8786"}
  hosts:
    h1: {ansible_host: 203.0.113.11, fleet_memory: 64G}
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.folder import NAME_KEY, fleet_name
from feedstock_tools.builds.fleet.provision.playing import ansible, variables
from feedstock_tools.builds.fleet.provision.settings import PREFIX, Plan, plan_of, why_not
from feedstock_tools.errors import InputError, Mistake, WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import Document, Location, parse_document

_PARTS = frozenset({"hosts", "children", "vars"})
_LONGEST = 300.0
_SHAPE = "Expected: groups with hosts, children or vars, such as all: {hosts: {h1: {ansible_host: 203.0.113.11}}}."


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory that has been read: the name of its fleet, and its hosts."""

    path: Path
    fleet: str
    hosts: tuple[Plan, ...]

    @property
    def hub(self) -> str:
        """Where the hub listens."""
        return self.hosts[0].hub


def read_inventory(path: Path, environment: Mapping[str, str]) -> Inventory:
    """The fleet and the hosts of an inventory.

    Raises:
        InputError: it is missing or invalid, or has no hosts; also that Ansible is not installed.
        WorkError: the plugin of a cloud fails.
    """
    text = read_text(path, within=None)
    dynamic = _check(parse_document(text, path))
    fleet = fleet_name(path)
    listed = _listed(path, environment)
    hostvars = listed.get("_meta", {}).get("hostvars", {})
    names = sorted({*hostvars, *(host for group in listed.values() for host in group.get("hosts", ()))})
    if not names:
        hint = "The plugin finds none." if dynamic else "Add hosts: all: {hosts: {h1: {ansible_host: 203.0.113.11}}}."
        raise InputError("the inventory has no hosts", path=path, hint=hint)
    hosts = tuple(_plan(name, hostvars.get(name, {}), path, fleet) for name in names)
    _refuse_different_hubs(hosts, path)
    return Inventory(path, fleet, hosts)


def _check(document: Document) -> bool:
    """Report all mistakes of an inventory with their lines; whether it names the plugin of a cloud."""
    content = document.content
    if isinstance(content, dict) and "plugin" in content:
        return True
    mistakes = [each for each in document.mistakes if "tag" not in each.message]  # such as of Ansible's !vault
    if isinstance(content, dict):
        for group, value in content.items():
            mistakes += _mistakes_of_group(document, (group,), value)
    else:
        mistakes.append(_mistake(document, (), "an inventory is a mapping of groups", _SHAPE))
    if mistakes:
        raise InputError.of(mistakes)
    return False


def _mistakes_of_group(document: Document, at: Location, group: Any) -> Iterator[Mistake]:
    if group is None:
        return
    if not isinstance(group, dict):
        yield _mistake(document, at, f"the group {at[-1]} is not a mapping", _SHAPE)
        return
    for part, value in group.items():
        if part not in _PARTS:
            yield _mistake(document, (*at, part), f"a group has no {part!r}", _SHAPE)
        elif value is not None and not isinstance(value, dict):
            yield _mistake(document, (*at, part), f"{part} is not a mapping", _SHAPE)
        elif part == "vars":
            yield from _mistakes_of_variables(document, (*at, part), value)
        else:
            for name, below in (value or {}).items():
                check = _mistakes_of_group if part == "children" else _mistakes_of_variables
                yield from check(document, (*at, part, name), below)


def _mistakes_of_variables(document: Document, at: Location, settings: Any) -> Iterator[Mistake]:
    if settings is not None and not isinstance(settings, dict):
        yield _mistake(document, at, f"the variables of {at[-1]} are not a mapping", _SHAPE)
        return
    for key, value in (settings or {}).items():
        if key.startswith(PREFIX) and value is not None and (wrong := why_not(key, value)) is not None:
            yield _mistake(document, (*at, key), *wrong)


def _mistake(document: Document, at: Location, message: str, hint: str) -> Mistake:
    place = document.place(at, of_key=True)
    return Mistake(message, document.path, place.line, place.column, hint)


def _listed(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    command = [*ansible("inventory"), "--inventory", str(path.absolute()), "--list"]
    try:
        with temporary_folder() as folder:  # Ansible reads plugins and variables of the folder that it starts in
            run = subprocess.run(
                command,
                cwd=folder,
                env=variables(environment),
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST,
            )
    except subprocess.TimeoutExpired as error:
        raise WorkError(f"the inventory took more than {_LONGEST:g} s to read", path=path) from error
    try:
        listed = json.loads(run.stdout) if run.returncode == 0 else None
    except ValueError:
        listed = None
    if not isinstance(listed, dict):
        hint = "A cloud's plugin needs its collection: `ansible-galaxy collection install amazon.aws`, for example."
        raise WorkError(f"Ansible cannot read the inventory: {_last(run.stderr)}", path=path, hint=hint)
    return listed


def _last(messages: str) -> str:
    lines = [line for line in messages.splitlines() if line.strip()]
    return " ".join(lines[:3])


def _plan(name: str, hostvars: Mapping[str, Any], path: Path, fleet: str) -> Plan:
    named = hostvars.get(NAME_KEY, fleet)
    if named != fleet:
        raise InputError(f"{NAME_KEY} of host {name} is {named}, but the fleet is {fleet}", path=path)
    try:
        return plan_of(name, hostvars)
    except InputError as error:
        first = error.mistakes[0]
        raise InputError(first.message, path=path, hint=first.hint) from error


def _refuse_different_hubs(hosts: Sequence[Plan], path: Path) -> None:
    hubs = sorted({host.hub for host in hosts})
    if len(hubs) > 1:
        raise InputError(f"the hosts have different hubs: {', '.join(hubs)}", path=path, hint="A fleet has one.")
    if sum(host.is_hub for host in hosts) > 1:
        raise InputError("several hosts have fleet_runs_hub", path=path, hint="A fleet has one hub.")
