"""Two packages, file by file: whether two builds of the same inputs made the same, and what differs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Literal

from feedstock_tools.channel.archive import unpack
from feedstock_tools.digests import sha256_of
from feedstock_tools.files.temporary import temporary_folder

#: Bytes of a text whose lines are compared, and the lines of a difference that are kept.
_LARGEST_TEXT = 1 << 20
_MOST_LINES = 40

What = Literal["only in the first", "only in the second", "kind", "mode", "link", "text", "bytes"]


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that two packages do not share.

    Attributes:
        path: its path in the package.
        what: how it differs: it is missing in one, or has another kind (file or link), executable bit, target or
            content.
        sizes: bytes in the first and the second package; 0 where it is missing or a link.
        lines: of a text: the first lines of the difference, as `diff -u` shows them.
        first_byte: of other files: the offset of the first byte that differs.
    """

    path: str
    what: What
    sizes: tuple[int, int] = (0, 0)
    lines: tuple[str, ...] = ()
    first_byte: int | None = None


@dataclass(frozen=True, slots=True)
class PackageComparison:
    """Two packages compared: their SHA-256, the number of files in either, and those that differ, by path."""

    digests: tuple[str, str]
    files: int
    differences: tuple[FileDifference, ...]

    @property
    def same_bytes(self) -> bool:
        """Whether they are the same, byte for byte."""
        return self.digests[0] == self.digests[1]

    @property
    def same_contents(self) -> bool:
        """Whether every file is the same; the packages may still be packed differently."""
        return not self.differences


def compare_packages(first: Path, second: Path) -> PackageComparison:
    """Compare two packages, `.conda` or `.tar.bz2`, file by file: their contents and their metadata.

    Times and owners in the archives do not count, nor how they are compressed.

    Raises:
        InputError: one of them is missing.
        WorkError: one of them is damaged, or unpacks to more than its size explains.

    >>> first, second = sorted(workspace.artifacts.root.glob("*/tiny-[bg]*.conda"))
    >>> found = compare_packages(first, second)
    >>> found.same_contents, found.differences[0].path
    (False, 'info/hash_input.json')
    >>> compare_packages(first, first).same_bytes
    True
    """
    digests = sha256_of(first), sha256_of(second)
    with temporary_folder() as folder:
        sides = folder / "first", folder / "second"
        for package, side in zip((first, second), sides, strict=True):
            unpack(package, side)
        paths = sorted({path for side in sides for path in _files(side)})
        found = (_difference(path, *sides) for path in paths)
        return PackageComparison(digests, len(paths), tuple(each for each in found if each is not None))


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from ((Path(place) / name).relative_to(folder).as_posix() for name in (*names, *links))


def _difference(path: str, *sides: Path) -> FileDifference | None:
    first, second = (side / path for side in sides)
    if not os.path.lexists(second):
        return FileDifference(path, "only in the first", (_size(first), 0))
    if not os.path.lexists(first):
        return FileDifference(path, "only in the second", (0, _size(second)))
    if first.is_symlink() != second.is_symlink():
        return FileDifference(path, "kind", (_size(first), _size(second)))
    if first.is_symlink():
        targets = str(first.readlink()), str(second.readlink())
        return FileDifference(path, "link", lines=targets) if targets[0] != targets[1] else None
    sizes = _size(first), _size(second)
    if sizes[0] == sizes[1] and sha256_of(first) == sha256_of(second):
        return None if _is_program(first) == _is_program(second) else FileDifference(path, "mode", sizes)
    texts = (_text(first), _text(second)) if max(sizes) <= _LARGEST_TEXT else (None, None)
    if texts[0] is not None and texts[1] is not None:
        lines = unified_diff(texts[0].splitlines(), texts[1].splitlines(), lineterm="", n=0)
        return FileDifference(path, "text", sizes, tuple(islice(lines, 2, _MOST_LINES + 2)))
    return FileDifference(path, "bytes", sizes, first_byte=_first_byte(first, second))


def _size(path: Path) -> int:
    return 0 if path.is_symlink() else path.stat().st_size


def _is_program(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def _text(path: Path) -> str | None:
    content = path.read_bytes()
    try:
        return None if b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _first_byte(first: Path, second: Path) -> int:
    """The offset of the first byte that differs; the length of the shorter file if the other only goes on."""
    at = 0
    with first.open("rb") as first_file, second.open("rb") as second_file:
        while True:
            one, other = first_file.read(1 << 16), second_file.read(1 << 16)
            if one != other or not one:
                pairs = zip(one, other, strict=False)
                return at + next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
            at += len(one)
