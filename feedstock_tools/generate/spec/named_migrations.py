"""Migrations that a spec takes part in by name: their time stamps are those of the pinning's copies."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.generate.spec.model import Migration, Spec
from feedstock_tools.reading import is_file, read_text

#: Where a feedstock holds the migrations that it takes part in.
STUBS = Path(CI_SUPPORT, "migrations")
_TIMESTAMP = re.compile(r"^migrator_ts:\s*([0-9.]+)", re.MULTILINE)
_NUMBER = re.compile(r"^\s+migration_number:\s*(\d+)", re.MULTILINE)


def with_time_stamps(spec: Spec, feedstock: Path, migrations: Path | None, place: Path | None = None) -> Spec:
    """The spec with the time stamps of all its migrations.

    Args:
        feedstock: its folder; the stubs in it are asked where there is no pinning.
        migrations: the folder of the pinning's migrations, if there is a pinning.
        place: the file of the spec, for messages.

    Raises:
        InputError: the pinning has no migration of a name, or there is neither a pinning nor a stub.
    """
    named = [name for name, migration in spec.migrations.items() if migration.timestamp is None]
    if not named:
        return spec
    folder = migrations or feedstock / STUBS
    mistakes = [_unknown(name, migrations, place) for name in named if not is_file(folder / f"{name}.yaml")]
    if mistakes:
        raise InputError.of(mistakes)
    shared = {name: _read(folder / f"{name}.yaml") for name in named}
    return spec.model_copy(update={"migrations": {**spec.migrations, **shared}})


def _read(path: Path) -> Migration:
    """The time stamp and number of a migration, which stand in lines of their own.

    Lines are searched, since selectors may follow any of them and make the rest no YAML.
    """
    text = read_text(path, within=path.parent)
    timestamp, number = _TIMESTAMP.search(text), _NUMBER.search(text)
    if timestamp is None:
        raise InputError("the migration has no migrator_ts", path=path)
    numbered = number or re.search(r"migration_number:\s*\n\s+(\d+)", text)
    return Migration(timestamp=timestamp[1], number=int(numbered[1]) if numbered else 1)


def _unknown(name: str, migrations: Path | None, place: Path | None) -> Mistake:
    if migrations is None:
        hint = "Give a pinning with --pinning, fetch one with 'feedstock-tools pinning update', or write its timestamp."
        return Mistake(f"the time stamp of the migration '{name}' is in conda-forge's pinning", place, hint=hint)
    names = sorted(path.stem for path in migrations.glob("*.yaml"))
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(names) or 'none'}."
    return Mistake(f"the pinning has no migration '{name}'", place, hint=hint)
