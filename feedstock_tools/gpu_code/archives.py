"""The files in an archive, one after the other: wheels and other zips, tar with gzip, bzip2 or xz, conda packages, and
archives inside of them.

An archive may come from anybody: it unpacks to no more than its size explains, no name in it becomes a path here, and
at most one file of it (and of each archive around it) is on the disk at a time.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import posixpath
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from feedstock_tools.bounds.limits import LIFTING, most
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, plausible_file_count, unpack, unpacked_size
from feedstock_tools.errors import WorkError
from feedstock_tools.files.temporary import temporary_folder

#: Files of an archive, those of archives inside of it included.
_MOST_FILES = 60_000
#: Archives inside of archives: a package in a zip in a tar.
_DEEPEST = 4
_PIECE = 1 << 20
#: Bytes of a long name or of extended attributes in a tar.
_LONGEST_NAME = 1 << 20
_BLOCK = tarfile.BLOCKSIZE
#: Bytes of memory that unpacking an xz file may take; `xz -9` needs 65 MiB.
_XZ_MEMORY = 256 << 20

#: Headers that say more of the next file, or of all.
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.XGLTYPE,
)

#: Kinds of archives by their first bytes.
_ZIP, _TAR, _BZIP2 = "zip", "tar", b"BZh"
_COMPRESSED: dict[bytes, Callable[[IO[bytes]], _Source]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    _BZIP2: lambda packed: bz2.BZ2File(packed),
    b"\xfd7zXZ\x00": lambda packed: _Xz(packed),
}
_METADATA = "info/index.json"
#: Archives that cannot be read here, by their first bytes.
_UNREADABLE = {
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\xed\xab\xee\xdb": "an RPM package",
    b"!<arch>\ndebian": "a Debian package",
    b"MSCF": "a cabinet file",
    b"\x04\x22\x4d\x18": "an LZ4 file",
    b"hsqs": "a squashfs image",
    b"xar!": "a macOS package",
}
_DAMAGED = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError)


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Unread:
    """An archive that cannot be read, and why."""

    reason: str


class _TooLargeError(Exception):
    """An archive that unpacks to more than its size explains."""


class _Budget:
    def __init__(self, path: Path) -> None:
        self._bytes = self._all = unpacked_size(path.stat().st_size)
        self._most = min(_MOST_FILES, plausible_file_count(path.stat().st_size))
        self._files = most(self._most)

    def take(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            raise _TooLargeError(f"it unpacks to more than {self._all // 1_000_000:.0f} MB")

    def count(self) -> None:
        self._files -= 1
        if self._files < 0:
            raise _TooLargeError(f"it has more than {self._most} files")


class _Stream:
    def __init__(self, source: _Source, budget: _Budget) -> None:
        self._source, self._budget = source, budget

    def read(self, size: int) -> bytes:
        """Up to a number of bytes; fewer only at the end."""
        parts = []
        while size > 0 and (part := self._source.read(min(size, _PIECE))):
            self._budget.take(len(part))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def pieces(self, size: int | None = None) -> Iterator[bytes]:
        """The next bytes in pieces; without a size, all of them."""
        while (size is None or size > 0) and (part := self.read(_PIECE if size is None else min(size, _PIECE))):
            size = None if size is None else size - len(part)
            yield part
        if size:
            raise EOFError("the archive ends too early")


class _Xz:
    """An unpacked xz file: as `lzma.open`, which has no limit on the memory that a file may ask for."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._stream = _unpacker()

    def read(self, size: int, /) -> bytes:
        """Up to a number of bytes, none at the end."""
        while True:
            if self._stream.eof:
                rest = self._stream.unused_data or self._packed.read(_PIECE)
                if not rest.strip(b"\0"):
                    return b""
                self._stream = _unpacker()  # several may follow each other in one file
                part = self._stream.decompress(rest, size)
            else:
                packed = self._packed.read(_PIECE) if self._stream.needs_input else b""
                if self._stream.needs_input and not packed:
                    raise EOFError("the file ends too early")
                part = self._stream.decompress(packed, size)
            if part:
                return part


def _unpacker() -> lzma.LZMADecompressor:
    limit = most(_XZ_MEMORY)
    return lzma.LZMADecompressor(memlimit=None if limit == float("inf") else int(limit))


def files_of(path: Path) -> Iterator[tuple[str, Path | Unread]]:
    """The files in an archive by their names in it, each at a path that is valid until the next one.

    Of any other file, the file itself under no name.
    A file in an archive inside has the names of both: `lib.zip/libk.so`. An archive inside that cannot be read is one
    of the files, as `Unread`.

    Raises:
        WorkError: the archive cannot be read, is damaged, or unpacks to more than its size explains.
    """
    if _kind(path) is None:
        yield "", path
        return
    budget = _Budget(path)
    try:
        with temporary_folder() as folder:
            yield from _files(path, folder, budget, 1)
    except _TooLargeError as error:
        raise WorkError(f"this archive is refused: {error}", path=path, hint=LIFTING) from error
    except _UnreadableError as error:
        raise WorkError(f"cannot look inside: {error}", path=path, hint="Unpack it, and name the folder.") from error


class _UnreadableError(Exception):
    """An archive that cannot be read: of an unknown kind, encrypted or damaged."""


def _kind(path: Path) -> str | bytes | None:
    """`zip`, `tar`, or the first bytes of a compressed or unreadable archive; None for any other file."""
    with path.open("rb") as stream:
        start = stream.read(_BLOCK)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _ZIP
    magic_found = next((magic for magic in (*_COMPRESSED, *_UNREADABLE) if start.startswith(magic)), None)
    return magic_found or (_TAR if _header(start) is not None else None)


def _files(path: Path, folder: Path, budget: _Budget, depth: int) -> Iterator[tuple[str, Path | Unread]]:
    """The files of one archive; those of archives inside follow under the name of theirs."""
    if depth > _DEEPEST:
        raise _UnreadableError(f"it is inside of {_DEEPEST} other archives")
    for name, file in _members(path, folder, budget, depth):
        if _kind(file) is None:
            yield name, file
            continue
        try:
            for inner, found in _files(file, folder, budget, depth + 1):
                yield (f"{name}/{inner}" if inner else name), found
        except _UnreadableError as error:
            yield name, Unread(str(error))


def _members(path: Path, folder: Path, budget: _Budget, depth: int) -> Iterator[tuple[str, Path]]:
    kind = _kind(path)
    part = folder / f"{depth}"
    if isinstance(kind, bytes) and kind in _UNREADABLE:
        raise _UnreadableError(f"{_UNREADABLE[kind]} cannot be read here")
    try:
        if kind == _ZIP:
            yield from _of_zip(path, part, budget)
        elif kind == _BZIP2 and _is_package(path, part):
            yield from _of_package(path, budget, PACKAGE_SUFFIXES[1])
        else:
            with path.open("rb") as packed:
                stream = _COMPRESSED[kind](packed) if isinstance(kind, bytes) else packed
                yield from _of_stream(_Stream(stream, budget), part, budget)
    except (*_DAMAGED, zipfile.BadZipFile) as error:
        raise _UnreadableError(f"it is damaged or encrypted: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _of_zip(path: Path, part: Path, budget: _Budget) -> Iterator[tuple[str, Path]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.filename.startswith("pkg-") and entry.filename.endswith(".tar.zst") for entry in entries):
            yield from _of_package(path, budget, PACKAGE_SUFFIXES[0])
            return
        for entry in entries:
            budget.count()
            if entry.is_dir():
                continue
            with archive.open(entry) as source:
                _write(part, _Stream(source, budget).pieces())
            yield entry.filename, part


def _is_package(path: Path, part: Path) -> bool:
    """Whether a tar with bzip2 is a conda package: some reader may find its metadata in it."""
    budget = _Budget(path)
    with path.open("rb") as packed, closing(_of_stream(_Stream(bz2.BZ2File(packed), budget), part, budget)) as files:
        return any(posixpath.normpath(name) == _METADATA for name, _ in files)


def _of_package(path: Path, budget: _Budget, suffix: str) -> Iterator[tuple[str, Path]]:
    """A conda package, in the one reading that all have of it."""
    with temporary_folder() as holding, temporary_folder() as folder:
        package = holding / f"package{suffix}"
        shutil.copyfile(path, package)
        try:
            unpack(package, folder)
        except WorkError as error:
            raise _UnreadableError(error.mistakes[0].message) from error
        package.unlink()
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                budget.count()
                budget.take(file.stat().st_size)
                yield file.relative_to(folder).as_posix(), file


def _of_stream(stream: _Stream, part: Path, budget: _Budget) -> Generator[tuple[str, Path], None, None]:
    """The files of a tar; of any other compressed file, the file itself under no name."""
    block = stream.read(_BLOCK)
    if _header(block) is None:
        _write(part, (piece for pieces in ((block,), stream.pieces()) for piece in pieces))
        yield "", part
        return
    name, size = None, None
    while (header := _header(block)) is not None:
        budget.count()
        length = header.size if size is None else size
        if header.type in tarfile.SUPPORTED_TYPES and not header.isreg() and header.type not in _EXTENDED:
            length = 0  # a link or a folder, whatever its size says
        if header.type in _EXTENDED:
            length = header.size
            content = stream.read(min(header.size, _LONGEST_NAME))
            name, size = _extended(header, content, name, size)
            _pass(stream, length - len(content))
        elif header.isreg():
            _write(part, stream.pieces(length))
            yield name or header.name, part
            name, size = None, None
        else:
            _pass(stream, length)
            name, size = None, None
        _pass(stream, -length % _BLOCK)
        block = stream.read(_BLOCK)
    if block.strip(b"\0"):
        raise EOFError("the archive ends too early")
    if any(piece.strip(b"\0") for piece in stream.pieces()):  # where some readers find another archive
        raise EOFError("it has bytes after its end")


def _header(block: bytes) -> tarfile.TarInfo | None:
    """The header of a file in a tar; None for other blocks, such as those at the end."""
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None


def _extended(
    header: tarfile.TarInfo, content: bytes, name: str | None, size: int | None
) -> tuple[str | None, int | None]:
    """The name and the size of the next file, as far as an extended header has them (POSIX.1-2001, pax)."""
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return content.rstrip(b"\0").decode("utf-8", "surrogateescape"), size
    if header.type in (tarfile.GNUTYPE_LONGLINK, tarfile.XGLTYPE):
        return name, size
    for line in content.split(b"\n"):
        key, _, value = line.partition(b" ")[2].partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", "surrogateescape")
        elif key == b"size" and value.isdigit():
            size = int(value)
    return name, size


def _pass(stream: _Stream, size: int) -> None:
    for _ in stream.pieces(size):
        pass


def _write(path: Path, pieces: Iterator[bytes]) -> None:
    path.unlink(missing_ok=True)  # ext4 writes a file to the disk that is emptied and written again: 3 ms for each
    with path.open("wb") as stream:
        for piece in pieces:
            stream.write(piece)
