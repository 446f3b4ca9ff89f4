"""The packages of the stand-in channel, from real recipes.

The data is `variants/packages.yaml`: a table of sources (a feedstock at a commit) and a list of families of packages,
which `facts.families` expands. docs/stand-in-channel.md describes the format; `facts.models.PackagesFile` is its form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.families import Finding, expanded
from feedstock_tools.facts.known_packages import KnownPackage
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.values import parse_texts

if TYPE_CHECKING:
    from feedstock_tools.yaml_reading.positions import Document


def packages_file() -> Path:
    """The file that ships with this tool."""
    return data_folder("variants") / "packages.yaml"


def read_packages(path: Path | None = None) -> tuple[KnownPackage, ...]:
    """All packages of the file, for all subdirs, in the order of the file.

    Args:
        path: a file to use instead of the one that ships with this tool; it is checked first.

    Raises:
        InputError: the file cannot be read or has mistakes; all of them.
    """
    if path is None:
        return _shipped(packages_file())
    document = _checked(path)
    return _without_mistakes(expanded(document.content, check=True), document)


@cache
def _shipped(path: Path) -> tuple[KnownPackage, ...]:
    """Those of the file that ships with this tool, which several steps of a build ask for."""
    return _without_mistakes(expanded(parse_texts(read_text(path, within=None), path), check=False), None)


def _without_mistakes(
    found: tuple[tuple[KnownPackage, ...], Sequence[Finding]], document: Document | None
) -> tuple[KnownPackage, ...]:
    packages, findings = found
    if findings:
        mistakes = (_mistake(document, location, message) for location, message in findings)
        raise InputError.of(sorted(mistakes, key=lambda mistake: mistake.line or 0))
    return packages


def _checked(path: Path) -> Document:
    from feedstock_tools.facts.checking import check_document
    from feedstock_tools.facts.models import PackagesFile
    from feedstock_tools.yaml_reading.positions import parse_document

    document = parse_document(read_text(path, within=None), path)
    check_document(document, document.content, PackagesFile)
    return document


def _mistake(document: Document | None, location: tuple[str | int, ...], message: str) -> Mistake:
    if document is None:
        return Mistake(message, packages_file())
    place = document.place(location)
    return Mistake(message, document.path, place.line, place.column)
