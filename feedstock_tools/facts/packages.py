"""What real recipes say of the packages that the stand-in channel holds: the values, and reading them.

The data is `variants/packages.yaml`: a table of sources (a feedstock at a commit) and a list of families of packages,
which `facts.families` expands. docs/stand-in-channel.md describes the format; `facts.models.PackagesFile` is its form.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.values import parse_texts

if TYPE_CHECKING:
    from feedstock_tools.yaml_reading.positions import Document

__all__ = ["KnownPackage", "PackageSource", "packages_file", "read_packages"]


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


def packages_file() -> Path:
    """The file that ships with this tool."""
    return data_folder("variants") / "packages.yaml"


def read_packages(path: Path | None = None) -> tuple[KnownPackage, ...]:
    """All packages of the file, for all subdirs, in the order of the file.

    Args:
        path: a file to use instead of the one that ships with this tool; it is checked first.

    Raises:
        InputError: the file cannot be read or holds mistakes; all of them.
    """
    from feedstock_tools.facts.families import expanded

    document = None if path is None else _checked(path)
    content = parse_texts(read_text(packages_file()), packages_file()) if document is None else document.content
    packages, findings = expanded(content, check=document is not None)
    if findings:
        mistakes = (_mistake(document, location, message) for location, message in findings)
        raise InputError.of(sorted(mistakes, key=lambda mistake: mistake.line or 0))
    return packages


def _checked(path: Path) -> Document:
    from feedstock_tools.facts.checking import check_document
    from feedstock_tools.facts.models import PackagesFile
    from feedstock_tools.yaml_reading.positions import parse_document

    document = parse_document(read_text(path), path)
    check_document(document, document.content, PackagesFile)
    return document


def _mistake(document: Document | None, location: tuple[str | int, ...], message: str) -> Mistake:
    if document is None:
        return Mistake(message, packages_file())
    place = document.place(location)
    return Mistake(message, document.path, place.line, place.column)
