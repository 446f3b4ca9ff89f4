"""The packages kept in the user's cache: which files of a package are kept, and the versions that are there.

Each version is a folder laid out as the package, with a file that records its origin. Nothing here uses the network:
see `channel.kept.fetch`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError


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
        """Whether a file of the package is kept."""
        return path in self.needed or path.startswith(self.kept)


@dataclass(frozen=True, slots=True)
class KeptPackage:
    """A version on this machine: its folder, and the channel and hash of the package that it came from."""

    folder: Path
    version: str
    channel: str
    sha256: str

    def to_json(self) -> dict[str, object]:
        """The values for `--json`."""
        return {
            "version": self.version,
            "path": str(self.folder),
            "channel": self.channel,
            "sha256": self.sha256,
        }


def kept_packages(kind: PackageKind, cache: Path) -> tuple[KeptPackage, ...]:
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
    found = (read_kept(kind, folder) for folder in folders)
    return tuple(
        sorted((package for package in found if package), key=lambda package: version_numbers(package.version) or ())
    )


def kept_version(kind: PackageKind, cache: Path, version: str) -> KeptPackage | None:
    """The given version in a cache; None if it has not been fetched."""
    wanted = version_numbers(version)
    return next((package for package in kept_packages(kind, cache) if version_numbers(package.version) == wanted), None)


def read_kept(kind: PackageKind, folder: Path) -> KeptPackage | None:
    """The version that this program keeps in a folder; None if the folder contains something else."""
    try:
        origin = json.loads((folder / kind.origin).read_bytes())
        version, channel, sha256 = (str(origin[key]) for key in ("version", "channel", "sha256"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    complete = all((folder / name).is_file() for name in kind.needed)
    return KeptPackage(folder, version, channel, sha256) if complete and version_numbers(version) else None


def version_numbers(version: str) -> tuple[int, ...] | None:
    """A version as numbers, since `2021.10.29.07.34.22` and `2021.10.29.7.34.22` are the same; None: this is not a
    version."""
    parts = version.split(".")
    if len(parts) < 3 or not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        return None
    return tuple(int(part) for part in parts)
