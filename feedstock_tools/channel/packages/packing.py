"""Packing conda packages: the same entries are always the same bytes.

Tars are lists of their blocks, zips hold stored members that are all of one time, and Zstandard frames (RFC 8878) have
stored blocks, so that no compression library is needed, whose version could change bytes.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from feedstock_tools.errors import WorkError

#: The header of an empty file without a name, and the largest number that fits into its fields of eleven octal digits.
_HEADER = tarfile.TarInfo().tobuf(tarfile.GNU_FORMAT)
_LARGEST_NUMBER = 8**11 - 1


def add_entry(
    archive: list[bytes],
    name: str,
    content: bytes,
    timestamp: int,
    *,
    executable: bool = False,
    link: str | None = None,
) -> None:
    """Add a file or a link to the parts of a tar; `TarFile.addfile` takes ten times as long.

    Args:
        timestamp: in milliseconds since 1970.

    Raises:
        WorkError: the name leads out of the package.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise WorkError(f"'{name}' leads out of the package")
    entry = tarfile.TarInfo(name)
    entry.mtime = timestamp // 1000
    entry.mode = 0o755 if executable else 0o644
    if link is None:
        entry.size = len(content)
    else:
        entry.type, entry.linkname = tarfile.SYMTYPE, link
    archive += (_header(entry), content, bytes(-len(content) % tarfile.BLOCKSIZE))


def ended(archive: list[bytes]) -> list[bytes]:
    """The parts of a tar with the two empty blocks that end it, and without the padding to 10 KiB of tarfile."""
    return [*archive, bytes(2 * tarfile.BLOCKSIZE)]


def _header(entry: tarfile.TarInfo) -> bytes:
    """The header of an entry as tarfile writes it, with the names of most entries in a quarter of the time."""
    names = (entry.name, entry.linkname)
    is_short = all(name.isascii() and len(name) <= tarfile.LENGTH_NAME for name in names)
    if not is_short or not 0 <= entry.mtime <= _LARGEST_NUMBER or entry.size > _LARGEST_NUMBER:
        return entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")
    name, link = (text.encode().ljust(tarfile.LENGTH_NAME, b"\0") for text in names)
    numbers = b"%011o\0%011o\0" % (entry.size, int(entry.mtime))
    before = b"%b%07o\0%b%b" % (name, entry.mode, _HEADER[108:124], numbers)
    after = entry.type + link + _HEADER[257:]
    return b"%b%06o\0 %b" % (before, sum(before) + sum(after) + sum(b" " * 8), after)


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


#: Magic number, and the header of a frame without content size whose window is one block.
_FRAME_HEADER = bytes((0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38))
_FRAME_BLOCK = 128 * 1024


def stored_frame(content: bytes | memoryview) -> bytes:
    """`content` as a Zstandard frame of stored blocks.

    >>> stored_frame(b"abc").hex(" ")
    '28 b5 2f fd 00 38 19 00 00 61 62 63'
    """
    return b"".join(stored_blocks([content]))


def stored_blocks(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The same of a content in parts: the header of the frame, and one block after the other.

    >>> [block.hex(" ") for block in stored_blocks([b"a", b"", b"bc"])]
    ['28 b5 2f fd 00 38', '19 00 00 61 62 63']
    """
    yield _FRAME_HEADER
    pieces: list[memoryview] = []
    room = _FRAME_BLOCK
    for part in parts:
        rest = memoryview(part)
        while rest:
            if not room:
                yield _frame_block(pieces, _FRAME_BLOCK, last=False)
                pieces, room = [], _FRAME_BLOCK
            pieces.append(rest[:room])
            rest = rest[room:]
            room -= len(pieces[-1])
    yield _frame_block(pieces, _FRAME_BLOCK - room, last=True)


def _frame_block(pieces: Iterable[memoryview], size: int, *, last: bool) -> bytes:
    return b"".join(((size << 3 | last).to_bytes(3, "little"), *pieces))
