"""A pinning on disk, and which migrations of a feedstock apply to it.

(conda_smithy/configure_feedstock.py: get_migrations_in_dir, set_migration_fns.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.yaml_reading.values import read_texts

_CONFIG = "conda_build_config.yaml"
_MIGRATIONS = Path("share", "conda-forge", "migrations")


@dataclass(frozen=True, slots=True)
class Pinning:
    """The global pinning: its variant file, and the folder of its migrations, if any."""

    config: Path
    migrations: Path | None


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations to apply, those of the feedstock that are over, and those applied that it does not have yet."""

    applied: tuple[Path, ...] = ()
    finished: tuple[Path, ...] = ()
    added: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Header:
    path: Path
    timestamp: str | None
    number: str
    use_local: bool


def find_pinning(path: Path) -> Pinning:
    """The pinning at `path`: a folder laid out as the conda-forge-pinning package, its own feedstock, or its variant
    file.

    Raises:
        InputError: there is none.
    """
    folder = path / "recipe" if (path / "recipe" / _CONFIG).is_file() else path
    config = folder / _CONFIG if path.is_dir() else path
    if not config.is_file():
        raise InputError(
            "there is no pinning here",
            path=path,
            hint=f"Give the folder that contains {_CONFIG} and {_MIGRATIONS}, or the file itself.",
        )
    folders = (config.parent / _MIGRATIONS, config.parent / "migrations")
    return Pinning(config, next((place for place in folders if place.is_dir()), None))


def migrations_of(feedstock: Path, pinning: Pinning | None, rules: Rules, added: Sequence[Path] = ()) -> Migrations:
    """Which migrations of a feedstock apply, in the pinning's copy if it has the same migration.

    Args:
        added: more migrations, whether the pinning has them or not; the feedstock's own of the same names do not count.

    Raises:
        InputError: a migration is not a mapping in YAML.
    """
    own = _migrations_of(feedstock, pinning, rules)
    names = {path.name for path in added}
    applied, finished = (
        tuple(path for path in paths if path.name not in names) for paths in (own.applied, own.finished)
    )
    return Migrations((*added, *applied), finished, tuple(added))


def _migrations_of(feedstock: Path, pinning: Pinning | None, rules: Rules) -> Migrations:
    if rules.migrations_from == "nowhere":
        return Migrations()
    top = rules.migrations_from == "top folder"
    own = _headers(feedstock / "migrations" if top else feedstock / CI_SUPPORT / "migrations", feedstock)
    names = {header.path.name for header in own} if rules.migrations_match_by_name else None
    if rules.migrations_from != "pinning" or pinning is None or pinning.migrations is None:
        return Migrations(tuple(header.path for header in own))
    upstream = {_identity(header, rules): header for header in _headers(pinning.migrations, None, names)}
    finished: list[Path] = []
    from_feedstock: list[Path] = []
    from_pinning: list[Path] = []
    for header in own:
        same = upstream.get(_identity(header, rules))
        timeless = header.timestamp is None and rules.migrations_without_time_kept
        if timeless or (header.use_local and rules.migrations_may_be_local):
            from_feedstock.append(header.path)
        elif same is None:
            finished.append(header.path)
        else:
            unchanged = same.number == header.number
            (from_pinning if unchanged else from_feedstock).append(same.path if unchanged else header.path)
    # conda-smithy orders migrations with the same time stamp by their paths, and so by where its folders are; a
    # feedstock's folder usually sorts before that of the cached pinning.
    return Migrations((*from_feedstock, *from_pinning), tuple(finished))


def _identity(header: _Header, rules: Rules) -> tuple[str | None, ...]:
    return (header.path.name, header.timestamp) if rules.migrations_match_by_name else (header.timestamp,)


def _headers(folder: Path, within: Path | None, names: Collection[str] | None = None) -> list[_Header]:
    """The migrations of a folder; only those with the given names, if names identify migrations."""
    return [_header(path, within) for path in sorted(folder.glob("*.yaml")) if names is None or path.name in names]


def _header(path: Path, within: Path | None) -> _Header:
    content: Any = read_texts(path, within=within) or {}
    settings = content.get("__migrator", {}) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise InputError("a migration and its __migrator must be mappings", path=path)
    timestamp = content.get("migrator_ts")
    return _Header(
        path,
        timestamp if isinstance(timestamp, str) else None,
        str(settings.get("migration_number", "1")),
        str(settings.get("use_local", "false")).lower() == "true",
    )
