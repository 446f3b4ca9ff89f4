"""conda-forge's global pinning on this machine: a folder, or a fetched one in the user's cache.

A pinning is laid out as the package conda-forge-pinning: `conda_build_config.yaml`, and migrations in
`share/conda-forge/migrations`. Nothing here uses the network: see `channel.pinning.fetch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from feedstock_tools.channel.kept.packages import (
    KeptPackage,
    PackageKind,
    kept_packages,
    kept_version,
    read_kept,
    version_numbers,
)
from feedstock_tools.data import cache_root
from feedstock_tools.errors import InputError

PINNING_PACKAGE = "conda-forge-pinning"
PINNING_FILE = "conda_build_config.yaml"
MIGRATIONS = Path("share/conda-forge/migrations")
PINNING = PackageKind(
    package=PINNING_PACKAGE,
    noun="pinning",
    needed=(PINNING_FILE,),
    kept=("share/conda-forge/",),
    origin="pinning.json",
    example="2021.10.29.07.34.22",
)


@dataclass(frozen=True, slots=True)
class Pinning:
    """A pinning on this machine: its `conda_build_config.yaml`, and its origin, if known."""

    path: Path
    version: str | None = None
    channel: str | None = None
    sha256: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the pinning, as `rerender --pinning` takes it."""
        return self.path.parent

    @property
    def migrations(self) -> tuple[Path, ...]:
        """The files of the migrations that come with it."""
        return tuple(sorted(self.migrations_folder.glob("*.yaml")))

    @property
    def migrations_folder(self) -> Path:
        """The folder of its migrations: as in the package, or beside the file as in the pinning's own feedstock."""
        of_feedstock = self.folder / "migrations"
        return of_feedstock if of_feedstock.is_dir() else self.folder / MIGRATIONS

    @property
    def released(self) -> datetime | None:
        """The time of its release, from its version; None if unknown."""
        return None if self.version is None else _moment(self.version)

    def describe(self, now: datetime) -> str:
        """The pinning in a few words: `conda-forge-pinning 2021.10.29.07.34.22 (5 years old)`."""
        if self.version is None:
            return f"the pinning {self.path}, of unknown version"
        return f"{PINNING_PACKAGE} {self.version} ({age_in_words(now - self.released) if self.released else 'no date'})"

    def to_json(self, now: datetime) -> dict[str, object]:
        """The values for `--json`."""
        released = self.released
        return {
            "version": self.version,
            "released": released.isoformat() if released else None,
            "age_days": (now - released).days if released else None,
            "path": str(self.path),
            "channel": self.channel,
            "sha256": self.sha256,
            "migrations": len(self.migrations),
        }


def pinning_cache(environment: Mapping[str, str]) -> Path:
    """The folder of pinnings in the user's cache, by this system's conventions."""
    return cache_root(environment) / PINNING_PACKAGE


def cached_pinnings(cache: Path) -> tuple[Pinning, ...]:
    """The pinnings in a cache, the newest last; none if there is no such folder."""
    return tuple(_pinning(kept) for kept in kept_packages(PINNING, cache))


def find_pinning(source: str | Path | None, cache: Path) -> Pinning:
    """The pinning to rerender with; never uses the network.

    Args:
        source: a folder laid out as the package, or the pinning's own feedstock; its `conda_build_config.yaml`; or a
            fetched version; None: the newest fetched one.
        cache: the folder returned by `pinning_cache`.

    Raises:
        InputError: there is no such pinning; the hint says how to get one.
    """
    if source is None:
        cached = cached_pinnings(cache)
        if not cached:
            raise InputError(
                "there is no pinning: none is given, and none has been fetched",
                hint="Fetch one with 'feedstock-tools pinning update', or give a folder or file with --pinning.",
            )
        return cached[-1]
    path = Path(source)
    if path.is_dir():
        if (path / "recipe" / PINNING_FILE).is_file():
            return Pinning(path / "recipe" / PINNING_FILE)
        if not (path / PINNING_FILE).is_file():
            raise InputError(f"there is no {PINNING_FILE} in this folder, so it is not a pinning", path=path)
        kept = read_kept(PINNING, path)
        return _pinning(kept) if kept else Pinning(path / PINNING_FILE, _installed_version(path))
    if path.is_file():
        return Pinning(path)
    if version_numbers(str(source)) is None:
        hint = "A pinning is a folder, a conda_build_config.yaml, or a version that `feedstock-tools pinning` fetched."
        raise InputError("there is no such file or folder", path=path, hint=hint)
    return _of_version(str(source), cache)


def age_in_words(age: timedelta) -> str:
    """A time span in the largest unit of which it has two or more: `5 years old`, `47 hours old`.

    >>> age_in_words(timedelta(hours=30)), age_in_words(timedelta(days=800))
    ('30 hours old', '2 years old')
    """
    seconds = age.total_seconds()
    for unit, length in (("year", 365.25 * 86400), ("month", 30.44 * 86400), ("day", 86400), ("hour", 3600)):
        number = int(seconds / length)
        if number >= 2:
            return f"{number} {unit}s old"
    return "from the future" if seconds < 0 else "less than two hours old"


def _of_version(version: str, cache: Path) -> Pinning:
    found = kept_version(PINNING, cache, version)
    if found is not None:
        return _pinning(found)
    kept = ", ".join(package.version for package in kept_packages(PINNING, cache)[-3:]) or "none"
    raise InputError(
        f"the pinning {version} has not been fetched",
        hint=f"Fetch it with 'feedstock-tools pinning fetch {version}'. Fetched versions: {kept}.",
    )


def _pinning(kept: KeptPackage) -> Pinning:
    return Pinning(kept.folder / PINNING_FILE, kept.version, kept.channel, kept.sha256)


def _installed_version(prefix: Path) -> str | None:
    """The version of the pinning in a conda environment."""
    names = (path.name for path in sorted((prefix / "conda-meta").glob(f"{PINNING_PACKAGE}-*.json")))
    versions = (name.removeprefix(f"{PINNING_PACKAGE}-").partition("-")[0] for name in names)
    return next((version for version in versions if version_numbers(version)), None)


def _moment(version: str) -> datetime | None:
    numbers = version_numbers(version) or ()
    try:
        return datetime(*(*numbers, 0, 0, 0)[:6], tzinfo=UTC)  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError, TypeError):
        return None
