"""A real package as the stand-in channel knows it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PackageSource:
    """The recipe of a package: a file of a feedstock at a commit, and the day of that commit."""

    feedstock: str
    commit: str
    path: str
    date: datetime.date

    def __str__(self) -> str:
        return f"conda-forge/{self.feedstock}-feedstock@{self.commit}:{self.path}"

    @property
    def timestamp(self) -> int:
        """Midnight (UTC) of the day, in milliseconds since 1970."""
        return _midnight(self.date)


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The origin of a package whose metadata follows no recipe: `the wheel of cmake`, `make on PATH`."""

    text: str
    date: datetime.date

    def __str__(self) -> str:
        return self.text

    @property
    def timestamp(self) -> int:
        """Midnight (UTC) of the day, in milliseconds since 1970."""
        return _midnight(self.date)


def _midnight(day: datetime.date) -> int:
    return int(datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()) * 1000


@dataclass(frozen=True, slots=True)
class KnownPackage:
    """The metadata of one package, from its recipe.

    `role` is set if the stand-in channel builds more than metadata: a compiler, its tools, or Python.
    `hash_known` is False if the seven digits in the build string are made up.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    source: PackageSource | OwnSource
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
        """Name, version and build joined as conda does."""
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def recipe(self) -> PackageSource:
        """Its recipe; every package but some tools has one."""
        assert isinstance(self.source, PackageSource)  # noqa: S101  (the model of packages.yaml holds it)
        return self.source
