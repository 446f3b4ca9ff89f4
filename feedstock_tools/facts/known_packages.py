"""What the stand-in channel knows of a real package."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["KnownPackage", "PackageSource"]


@dataclass(frozen=True, slots=True)
class PackageSource:
    """The recipe that says what a package is: a file of a feedstock at a commit, and the day of that commit."""

    feedstock: str
    commit: str
    path: str
    date: datetime.date

    def __str__(self) -> str:
        return f"conda-forge/{self.feedstock}-feedstock@{self.commit}:{self.path}"

    @property
    def timestamp(self) -> int:
        """Midnight (UTC) of the day, in milliseconds since 1970."""
        midnight = datetime.datetime.combine(self.date, datetime.time(), datetime.UTC)
        return int(midnight.timestamp()) * 1000


@dataclass(frozen=True, slots=True)
class KnownPackage:
    """The metadata of one package as its recipe gives it.

    `role` says what the stand-in channel makes of it, if more than metadata: a compiler, its tools, or Python.
    `hash_known` is False where the seven digits in the build string are of our own making.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    source: PackageSource
    noarch: str | None = None
    license: str | None = None
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    track_features: tuple[str, ...] = ()
    run_exports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    role: str | None = None
    hash_known: bool = True

    @property
    def distribution(self) -> str:
        """Name, version and build as conda writes them in one word."""
        return f"{self.name}-{self.version}-{self.build}"
