"""The required contents of a wheel and a source archive: the tracked files, each at its place, and nothing else.

A wheel also has the man pages, which are written while it is built.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from feedstock_tools.errors import WorkError
from maintenance.man import FOLDER, pages

#: Where the folders of the checkout lie in a wheel; every other folder stays out of it.
PLACES = {
    "feedstock_tools": "feedstock_tools",
    "templates": "feedstock_tools/_data/templates",
    "variants": "feedstock_tools/_data/variants",
    "examples": "feedstock_tools/_data/examples",
}
#: An example that needs a checkout: it packs the archive of a release.
ONLY_IN_CHECKOUT = "examples/feedstock-tools/"
_METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")


def files_of_wheel(tracked: Iterable[str], version: str) -> set[str]:
    """The files of a wheel by name, from the tracked files of the checkout and the program's commands.

    >>> sorted(files_of_wheel(["feedstock_tools/api.py", "docs/api.md", "variants/a.yaml"], "0.2.0"))[-2:]
    ['feedstock_tools/_data/variants/a.yaml', 'feedstock_tools/api.py']
    """
    placed = set()
    for name in tracked:
        top, _, rest = name.partition("/")
        if rest and top in PLACES and not name.startswith(ONLY_IN_CHECKOUT):
            placed.add(f"{PLACES[top]}/{rest}")
    metadata = {f"feedstock_tools-{version}.dist-info/{name}" for name in _METADATA}
    manuals = {f"feedstock_tools-{version}.data/data/{FOLDER}/{name}" for name in pages()}
    return placed | metadata | manuals


def check_wheel(wheel: Path, tracked: Iterable[str], version: str) -> None:
    """Compare a wheel with the tracked files and the man pages, and its metadata with the version.

    Raises:
        WorkError: a file is missing, or one too many, or the metadata name another version.
    """
    with zipfile.ZipFile(wheel) as archive:
        _compare(wheel, set(archive.namelist()), files_of_wheel(tracked, version))
        metadata = archive.read(f"feedstock_tools-{version}.dist-info/METADATA").decode()
    if f"\nVersion: {version}\n" not in metadata:
        raise WorkError(f"{wheel.name}: the metadata do not name version {version}")


def check_sdist(sdist: Path, tracked: Iterable[str], version: str) -> None:
    """Compare a source archive with the tracked files.

    Raises:
        WorkError: a file is missing, or one too many.
    """
    top = f"feedstock_tools-{version}"
    with tarfile.open(sdist) as archive:
        found = {member.name for member in archive if not member.isdir()}
    _compare(sdist, found, {str(PurePosixPath(top, name)) for name in (*tracked, "PKG-INFO")})


def _compare(archive: Path, found: set[str], expected: set[str]) -> None:
    lines = [f"  missing: {name}" for name in sorted(expected - found)]
    lines += [f"  not expected: {name}" for name in sorted(found - expected)]
    if lines:
        raise WorkError("\n".join([f"{archive.name} does not hold the files that it must:", *lines]))
