"""Fleets of bare hosts: their inventory, and their client."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.fleet.provision.inventory import Inventory, read_inventory
from feedstock_tools.builds.fleet.provision.wheelhouse import Target, wheelhouse
from feedstock_tools.errors import WorkError
from tests.support.hosts import BareHost, BareHosts, bare_hosts
from tests.support.needs import lacks
from tests.support.once import made_once


@dataclass
class Provisioned:
    """Bare hosts, their inventory, and the variables of the client: its own settings and cache."""

    bare: BareHosts
    inventory: Path
    environment: Mapping[str, str]

    @property
    def hosts(self) -> dict[str, BareHost]:
        """The hosts by name."""
        return self.bare.hosts

    def read(self) -> Inventory:
        """The inventory as `fleet up` reads it."""
        return read_inventory(self.inventory, self.environment)


def inventory_of(hosts: Mapping[str, BareHost], hub: str, settings: Mapping[str, Any]) -> str:
    """An inventory of hosts, as JSON, which is YAML."""
    any_host = next(iter(hosts.values()))
    variables = {
        "fleet_name": "bare",
        "fleet_hub": hub,
        "ansible_user": "root",
        "ansible_ssh_common_args": " ".join(any_host.ssh_options),
        **settings,
    }
    listed = {name: {"ansible_host": host.address} for name, host in hosts.items()}
    return json.dumps({"all": {"vars": variables, "hosts": listed}}, indent=1)


@contextmanager
def provisioned(
    names: Sequence[str], folder: Path, cache: Path, disks: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Provisioned]:
    """Running bare hosts with an inventory; their worker runs in a loop, as they have no systemd.

    Args:
        folder: for the client's private folder and the hosts' messages.
        cache: of the client, with the wheels.
        disks: names of hosts with little room → how much, such as `40M`.
        settings: of all hosts.
    """
    with bare_hosts(names, folder, disks) as bare:
        path = folder / "inventory.yml"
        path.write_text(inventory_of(bare.hosts, f"{bare.here}:8786", {"fleet_supervisor": "shell", **settings}))
        yield Provisioned(bare, path, client_of(folder, cache))


def client_of(folder: Path, cache: Path) -> dict[str, str]:
    """The variables of a client with its own settings and cache."""
    return {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(cache)}


def wheels_in(factory: pytest.TempPathFactory) -> Path:
    """A user's cache with the wheels of hosts, made once in a run; the test is skipped without a package index."""

    def fetch(folder: Path) -> None:
        try:
            wheelhouse(Target("3.11", "x86_64"), {**os.environ, "XDG_CACHE_HOME": str(folder)}, print)
        except WorkError as error:
            lacks("fetched", f"the wheels of hosts ({error})")

    return made_once(factory, "wheels-of-hosts", fetch)
