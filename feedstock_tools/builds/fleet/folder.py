"""The private folder of a fleet on its client: the authority, the keys, and what each machine gets.

authority.crt, authority.key    the fleet's own authority
own.crt, own.key                the client's certificate
fleet.json                      the hub's address
hub/, hosts/NAME/               what the hub and each host get, and nothing else
maintainers/NAME.crt            the certificates of those who were invited, which the hub trusts besides the authority
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.certificates import (
    AUTHORITY,
    AUTHORITY_KEY,
    CERTIFICATE,
    client_certificate,
    is_valid_for_long,
    issue,
    make_authority,
    refuse_bad_name,
    sign_own,
    write_private,
)
from feedstock_tools.builds.fleet.host.settings import SETTINGS
from feedstock_tools.data import config_root
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import parse_types

#: The variable of an inventory's group `all` that names its fleet.
NAME_KEY = "fleet_name"
_FLEET, _MAINTAINERS = "fleet.json", "maintainers"


@dataclass(frozen=True, slots=True)
class FleetFolder:
    """A fleet's private folder, its name, and the address of its hub."""

    path: Path
    name: str
    hub: str

    @property
    def for_hub(self) -> Path:
        """What the hub gets."""
        return self.path / "hub"

    def for_host(self, host: str) -> Path:
        """What a host gets."""
        return self.path / "hosts" / host

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of hosts with a certificate."""
        folder = self.path / "hosts"
        return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def fleets_root(environment: Mapping[str, str]) -> Path:
    """The folder of this user's fleets, by this system's conventions for settings."""
    return config_root(environment) / "fleets"


def make_fleet(path: Path, name: str, hub: str) -> FleetFolder:
    """Make a fleet's private folder, with the certificates of the client and the hub.

    Args:
        hub: `host:port`, as hosts and the client reach it.

    Raises:
        InputError: there is a fleet already, or its name is invalid.
        WorkError: the folder cannot be written.
    """
    refuse_bad_name(name)
    if (path / _FLEET).exists():
        hint = "Remove this folder if no machine of that fleet is in use any more."
        raise InputError("there is a fleet in this folder already", path=path, hint=hint)
    make_authority(path, name)
    issue(path, path, "client", "client")
    issue(path, path / "hub", "hub", "hub")
    write_private(path / _FLEET, json.dumps({"name": name, "hub": hub}).encode())
    return FleetFolder(path, name, hub)


def join_fleet(path: Path, name: str, hub: str, authority: Path) -> Path:
    """Make the private folder of a fleet that somebody else has made; returns the certificate to send to them.

    Raises:
        InputError: there is a fleet already, its name is invalid, or there is no such authority.
        WorkError: the folder cannot be written.
    """
    refuse_bad_name(name)
    if (path / _FLEET).exists():
        raise InputError("there is a fleet in this folder already", path=path, hint="Remove the folder to join again.")
    content = read_text(authority, within=None)
    sign_own(path, name)
    write_private(path / AUTHORITY, content.encode())
    write_private(path / _FLEET, json.dumps({"name": name, "hub": hub}).encode())
    return path / CERTIFICATE


def invite(fleet: FleetFolder, name: str, certificate: Path) -> None:
    """Let the hub trust the certificate of another maintainer.

    Raises:
        InputError: the fleet is somebody else's, the name is invalid, or it is no certificate of a client.
        WorkError: the folder cannot be written.
    """
    refuse_bad_name(name)
    _refuse_foreign(fleet)
    write_private(fleet.path / _MAINTAINERS / f"{name}.crt", client_certificate(certificate))
    _trust_maintainers(fleet)


def remove_maintainer(fleet: FleetFolder, name: str) -> None:
    """Let the hub no longer trust the certificate of a maintainer.

    Raises:
        InputError: there is no maintainer of this name.
        WorkError: the folder cannot be written.
    """
    _refuse_foreign(fleet)
    paths = {path.stem: path for path in (fleet.path / _MAINTAINERS).glob("*.crt")}
    if name not in paths:
        hint = f"There are: {', '.join(sorted(paths))}." if paths else "Nobody was invited."
        raise InputError(f"there is no maintainer {name!r} of the fleet {fleet.name}", hint=hint)
    paths[name].unlink()
    _trust_maintainers(fleet)


def _refuse_foreign(fleet: FleetFolder) -> None:
    if not (fleet.path / AUTHORITY_KEY).is_file():
        hint = "Who has made the fleet invites and removes."
        raise InputError(f"the fleet {fleet.name} is somebody else's", path=fleet.path, hint=hint)


def _trust_maintainers(fleet: FleetFolder) -> None:
    """Write whom the hub trusts: hosts trust the authority alone."""
    trusted = [fleet.path / AUTHORITY, *sorted((fleet.path / _MAINTAINERS).glob("*.crt"))]
    write_private(fleet.for_hub / AUTHORITY, b"".join(path.read_bytes() for path in trusted))


def add_host(fleet: FleetFolder, host: str, settings: Mapping[str, Any], folder: Path | None = None) -> Path:
    """Make what a host gets: its certificate and its settings; returns the folder.

    A certificate that is there and valid for some weeks stays.

    Args:
        settings: as `read_settings` reads them, without the host's name and the hub.
        folder: for it; default: that of a host that stays.
    """
    folder = folder or fleet.for_host(host)
    if not is_valid_for_long(folder):
        issue(fleet.path, folder, "host", host)
    write_private(folder / SETTINGS, json.dumps({**settings, "name": host, "hub": fleet.hub}, indent=1).encode())
    return folder


def move_hub(fleet: FleetFolder, hub: str) -> FleetFolder:
    """The fleet with its hub at an address; the hub's certificate is valid for any."""
    if hub != fleet.hub:
        write_private(fleet.path / _FLEET, json.dumps({"name": fleet.name, "hub": hub}).encode())
    if not is_valid_for_long(fleet.for_hub):
        issue(fleet.path, fleet.for_hub, "hub", "hub")
        issue(fleet.path, fleet.path, "client", "client")
        _trust_maintainers(fleet)
    return replace(fleet, hub=hub)


def open_fleet(path: Path) -> FleetFolder:
    """The fleet in a private folder.

    Raises:
        InputError: there is none.
    """
    try:
        content = json.loads(read_text(path / _FLEET, within=path))
        return FleetFolder(path, str(content["name"]), str(content["hub"]))
    except (InputError, ValueError, KeyError, TypeError) as error:
        hint = "`feedstock-tools fleet new NAME` makes one."
        raise InputError("there is no fleet in this folder", path=path, hint=hint) from error


def fleet_names(environment: Mapping[str, str]) -> list[str]:
    """The names of this user's fleets."""
    root = fleets_root(environment)
    return sorted(each.name for each in root.iterdir() if (each / _FLEET).is_file()) if root.is_dir() else []


def find_fleet(given: str, here: Path, environment: Mapping[str, str]) -> FleetFolder:
    """The fleet that a user means: by its name, its inventory, or the path of its private folder.

    Files that merely lie in a folder name none: it may be the folder of an untrusted feedstock, whose keys and
    inventory would send builds to its author's machines.

    Args:
        given: empty for this user's only fleet; a folder needs a separator, as in `./NAME`.

    Raises:
        InputError: there is none, or there are several.
    """
    root = fleets_root(environment)
    names = fleet_names(environment)
    if given in names or (not given and len(names) == 1):
        return open_fleet(root / (given or names[0]))
    if given and (path := here / given).is_file():
        return open_fleet(root / fleet_name(path))
    if {os.sep, "/"} & set(given) and (path / _FLEET).is_file():
        return open_fleet(path)
    known = f"There are: {', '.join(names)}." if names else "`feedstock-tools fleet new NAME` makes one."
    what = f"there is no inventory, folder or fleet {given!r}" if given else "no fleet is named"
    raise InputError(what, hint=f"{known} Name one: --fleet=NAME.")


def fleet_name(inventory: Path) -> str:
    """The name of the fleet of an inventory: its variable `fleet_name` of `all`, else the name of the file.

    Raises:
        InputError: the inventory cannot be read, or the name cannot be one.
    """
    content = parse_types(read_text(inventory, within=None), inventory)
    every = content.get("all") if isinstance(content, dict) else None
    variables = every.get("vars") if isinstance(every, dict) else None
    name = variables.get(NAME_KEY) if isinstance(variables, dict) else None
    found = str(name) if name is not None else inventory.stem
    refuse_bad_name(found)
    return found
