"""The zips that `.conda` packages are: of stored members that are all of one time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

_EPOCH = (1980, 1, 1, 0, 0, 0)
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a zip; one whose size in bytes is not known beforehand is written with zip64."""

    name: str
    blocks: Iterable[bytes]
    size: int | None = None


_VERSION = b'{"conda_pkg_format_version": 2}'
#: The first member of every package.
FORMAT = Member("metadata.json", (_VERSION,), len(_VERSION))


def write_members(stream: BinaryIO, members: Iterable[Member]) -> None:
    """Write a zip.

    Raises:
        OSError: it cannot be written.
    """
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for member in members:
            entry = zipfile.ZipInfo(member.name, _EPOCH)
            entry.file_size = member.size or 0
            with archive.open(entry, "w", force_zip64=member.size is None) as target:
                for block in member.blocks:
                    target.write(block)


def members_of(archive: zipfile.ZipFile, part: str) -> list[zipfile.ZipInfo]:
    """The members of a package that hold its part `info` or `pkg`, whatever the package was called when it was made.

    Raises:
        zipfile.BadZipFile: there is none.
    """
    found = [member for member in archive.infolist() if member.filename.startswith(f"{part}-")]
    if not found:
        raise zipfile.BadZipFile(f"it has no member named {part}-*")
    return found


def blocks_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of a member of another zip.

    Raises:
        OSError, zipfile.BadZipFile: it cannot be read.
    """
    with archive.open(member) as source:
        while block := source.read(_BLOCK):
            yield block
