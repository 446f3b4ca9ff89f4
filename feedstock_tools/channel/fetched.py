"""Fetched packages in the user's cache: conda-forge's global pinning, and releases of conda-smithy.

Each version is a folder laid out as the package, with a file that records its origin. A pinning has
`conda_build_config.yaml`, and migrations in `share/conda-forge/migrations`. Nothing here uses the network: see
`channel.fetching`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from feedstock_tools.data import cache_root
from feedstock_tools.errors import InputError

PINNING_PACKAGE = "conda-forge-pinning"
PINNING_FILE = "conda_build_config.yaml"
MIGRATIONS = Path("share/conda-forge/migrations")
_SMITHY = "site-packages/conda_smithy"


@dataclass(frozen=True, slots=True)
class PackageKind:
    """A package whose versions are kept.

    Attributes:
        package: its name in a channel.
        noun: what people call it, in messages.
        needed: the files that every version has, by their paths in the package.
        kept: the other files to keep: paths, or beginnings of paths.
        origin: the name of the file that records the origin of a kept version.
        example: a version, for hints.
    """

    package: str
    noun: str
    needed: tuple[str, ...]
    kept: tuple[str, ...]
    origin: str
    example: str

    @property
    def keeps_info(self) -> bool:
        """Whether files that describe the package are kept, too."""
        return any(name.startswith("info/") for name in (*self.needed, *self.kept))

    def keeps(self, path: str) -> bool:
        return path in self.needed or path.startswith(self.kept)


PINNING = PackageKind(
    package=PINNING_PACKAGE,
    noun="pinning",
    needed=(PINNING_FILE,),
    kept=("share/conda-forge/",),
    origin="pinning.json",
    example="2021.10.29.07.34.22",
)
#: Its templates and files that a rerender reads, and its license.
SMITHY = PackageKind(
    package="conda-smithy",
    noun="release of conda-smithy",
    needed=("info/index.json", f"{_SMITHY}/configure_feedstock.py", f"{_SMITHY}/templates/README.md.tmpl"),
    kept=(
        f"{_SMITHY}/templates/",
        f"{_SMITHY}/feedstock_content/",
        f"{_SMITHY}/data/conda-forge.yml",
        "info/licenses/",
    ),
    origin="smithy.json",
    example="3.50.1",
)


@dataclass(frozen=True, slots=True)
class FetchedPackage:
    """A version on this machine: its folder, and the channel and hash of the package that it came from."""

    folder: Path
    version: str
    channel: str
    sha256: str

    def to_json(self) -> dict[str, object]:
        return {"version": self.version, "path": str(self.folder), "channel": self.channel, "sha256": self.sha256}


def fetched_packages(kind: PackageKind, cache: Path) -> tuple[FetchedPackage, ...]:
    """The versions in a cache, the newest last; none if there is no such folder.

    Raises:
        InputError: the folder cannot be read.
    """
    try:
        folders = [entry for entry in cache.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise InputError(
            f"the kept versions of {kind.package} cannot be read: {error.strerror or error}", path=cache
        ) from error
    found = (read_fetched(kind, folder) for folder in folders)
    return tuple(
        sorted((package for package in found if package), key=lambda package: version_numbers(package.version) or ())
    )


def fetched_version(kind: PackageKind, cache: Path, version: str) -> FetchedPackage | None:
    """The given version in a cache; None if it has not been fetched."""
    wanted = version_numbers(version)
    return next(
        (package for package in fetched_packages(kind, cache) if version_numbers(package.version) == wanted), None
    )


def read_fetched(kind: PackageKind, folder: Path) -> FetchedPackage | None:
    """The version that this program keeps in a folder; None if the folder contains something else."""
    try:
        origin = json.loads((folder / kind.origin).read_bytes())
        version, channel, sha256 = (str(origin[key]) for key in ("version", "channel", "sha256"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    complete = all((folder / name).is_file() for name in kind.needed)
    return FetchedPackage(folder, version, channel, sha256) if complete and version_numbers(version) else None


def version_numbers(version: str) -> tuple[int, ...] | None:
    """A version as numbers, since `2021.10.29.07.34.22` and `2021.10.29.7.34.22` are the same; None: this is not a
    version."""
    parts = version.split(".")
    if len(parts) < 3 or not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        return None
    return tuple(int(part) for part in parts)


@dataclass(frozen=True, slots=True)
class Pinning:
    """A pinning to rerender with: the `conda_build_config.yaml` of a fetched package, or a file or folder of a user's.

    `version` is None if it is unknown, and so are `channel` and `sha256` of a pinning that was not fetched.
    """

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
    return cache_root(environment) / PINNING_PACKAGE


def smithy_cache(environment: Mapping[str, str]) -> Path:
    return cache_root(environment) / SMITHY.package


def cached_pinnings(cache: Path) -> tuple[Pinning, ...]:
    """The pinnings in a cache, the newest last; none if there is no such folder."""
    return tuple(_pinning(kept) for kept in fetched_packages(PINNING, cache))


def find_pinning(source: str | Path | None, cache: Path) -> Pinning:
    """The pinning to rerender with; never uses the network.

    Args:
        source: a folder laid out as the package, or the pinning's own feedstock; its `conda_build_config.yaml`; or a
            fetched version, which is a text; None: the newest fetched one.
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
    if isinstance(source, str) and version_numbers(source) is not None:  # whatever a stranger's feedstock has so named
        return _of_version(source, cache)
    path = Path(source)
    if path.is_dir():
        if (path / "recipe" / PINNING_FILE).is_file():
            return Pinning(path / "recipe" / PINNING_FILE)
        if not (path / PINNING_FILE).is_file():
            raise InputError(f"there is no {PINNING_FILE} in this folder, so it is not a pinning", path=path)
        kept = read_fetched(PINNING, path)
        return _pinning(kept) if kept else Pinning(path / PINNING_FILE, _installed_version(path))
    if path.is_file():
        return Pinning(path)
    hint = "A pinning is a folder, a conda_build_config.yaml, or a version that `feedstock-tools pinning` fetched."
    raise InputError("there is no such file or folder", path=path, hint=hint)


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
    found = fetched_version(PINNING, cache, version)
    if found is not None:
        return _pinning(found)
    kept = ", ".join(package.version for package in fetched_packages(PINNING, cache)[-3:]) or "none"
    raise InputError(
        f"the pinning {version} has not been fetched",
        hint=f"Fetch it with 'feedstock-tools pinning fetch {version}'. Fetched versions: {kept}.",
    )


def _pinning(kept: FetchedPackage) -> Pinning:
    return Pinning(kept.folder / PINNING_FILE, kept.version, kept.channel, kept.sha256)


def _installed_version(prefix: Path) -> str | None:
    """The version of the package that an environment has, or that a folder with the name of its archive holds."""
    names = (path.name for path in sorted((prefix / "conda-meta").glob(f"{PINNING_PACKAGE}-*.json")))
    of_package = [prefix.name] if prefix.name.startswith(f"{PINNING_PACKAGE}-") else []
    versions = (name.removeprefix(f"{PINNING_PACKAGE}-").partition("-")[0] for name in (*names, *of_package))
    return next((version for version in versions if version_numbers(version)), None)


def _moment(version: str) -> datetime | None:
    numbers = version_numbers(version) or ()
    try:
        return datetime(*(*numbers, 0, 0, 0)[:6], tzinfo=UTC)  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError, TypeError):
        return None
