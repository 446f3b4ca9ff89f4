"""What commands of a fleet need beyond the program itself: an inventory, and the packages of the extra."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.cli import options
from feedstock_tools.errors import InputError

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.carrying.link import Link
    from feedstock_tools.builds.fleet.folder import FleetFolder

#: Where no fleet is named; `folder.INVENTORY` would cost an import at start.
_INVENTORY = "inventory.yml"


def chosen_fleet(given: str | None) -> FleetFolder:
    """The fleet that is named on the command line; without a name the one here.

    Raises:
        InputError: there is none, or the extra is not installed.
    """
    refuse_without_extra()
    from feedstock_tools.builds.fleet.folder import find_fleet

    return find_fleet("" if given in (None, options.FLEET_HERE) else str(given), Path.cwd(), os.environ)


def inventory_of(fleet: str | None) -> Path:
    """The inventory that `--fleet` names.

    Raises:
        InputError: there is no such file.
    """
    path = Path(_INVENTORY if fleet in (None, options.FLEET_HERE) else str(fleet))
    if not path.is_file():
        hint = "Write one, or name it: --fleet=FILE. docs/fleet.md has examples."
        raise InputError("there is no inventory", path=path, hint=hint)
    return path


def linked(fleet: FleetFolder) -> Link:
    """A connection to a fleet, to be used as a context."""
    from feedstock_tools.builds.fleet.carrying.link import Link

    return Link(fleet)


def refuse_without_extra(*more: str) -> None:
    """Refuse to go on without the packages of the extra `fleet`.

    Args:
        more: packages that this command needs besides.

    Raises:
        InputError: one is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in ("distributed", "cryptography", *more) if find_spec(name) is None]
    if missing:
        hint = "Install the extra: pip install 'feedstock-tools[fleet]'"
        raise InputError(f"a fleet needs {' and '.join(missing)}", hint=hint)
