"""The one reading of conda packages: metadata, contents and verification come from one pass over one archive.

Other programs read the same bytes with other parsers: an index takes the first of two members, an installer the last.
So a package in which two readers can find different things is refused here, with the name of the member. Zstandard is
unpacked by rattler, which gets each part as the one member of an archive of ours; the tar inside is read here.
"""

from __future__ import annotations

import bz2
import io
import json
import os
import re
import secrets
import shutil
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tarfile import BLOCKSIZE, GNU_FORMAT, TarInfo
from typing import Any, BinaryIO, Literal, cast

from feedstock_tools.bounds.limits import LIFTING, most
from feedstock_tools.channel.metadata import DAMAGED, PackageMetadata
from feedstock_tools.channel.packages.packing import FORMAT, Member, blocks_of, stored_frame, write_members
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import open_file
from feedstock_tools.wording import without_unseen

#: The endings of files that are conda packages.
PACKAGE_SUFFIXES = (".conda", ".tar.bz2")

#: The files with a package's metadata.
_METADATA = ("info/index.json", "info/about.json", "info/run_exports.json")
_PATHS = "info/paths.json"
_HASH_INPUT = "info/hash_input.json"
#: Bytes of a document in `info/`, many times those of the largest one of conda-forge.
LARGEST_DOCUMENT = 8 << 20
#: Bytes that any package may unpack to, and how many times its size in addition; real ones unpack to 3 to 30 times.
_UNPACKED_BASE, _UNPACKED_TIMES = 256 << 20, 200
#: Members of the two parts: some packages have their tests and many licenses in `info/`.
MOST_MEMBERS = {"info": 10_000, "pkg": 40_000}
#: Files that any package may have, and the bytes of its size that explain each further one. Of 124 wheels Boost's has
#: the most files (16,235; TensorFlow 15,632, PyTorch 13,043); those of more than ten take 470 bytes and more for each.
_FILES_BASE, _BYTES_OF_A_FILE = 10_000, 250
#: The exceptions for packages that are missing or damaged.
UNREADABLE = (OSError, EOFError, InputError, zipfile.BadZipFile, RuntimeError, struct.error, *DAMAGED)
#: Bytes of the extended header of a member, which has its long name.
_LONGEST = 64 << 10
#: Characters of a path.
_LONGEST_PATH = 4096
_PIECE = 1 << 20

_PART = re.compile(r"(info|pkg)-([!-~]+)\.tar\.zst")
_KINDS: dict[bytes, _Kind] = {b"0": "file", b"\0": "file", b"1": "hard link", b"2": "link", b"5": "folder"}
#: Extended headers: GNU's long name and long target, and those of POSIX.1-2001.
_LONG = {b"L": "path", b"K": "linkpath"}
_POSIX = b"x"
#: What a POSIX header may say besides; nothing here uses it.
_PLAIN_KEYS = re.compile(rb"[amc]time|[ug]id|[ug]name|LIBARCHIVE\..*|SCHILY\.(xattr\..*|fflags|dev|ino|nlink)")
_OCTAL = re.compile(rb" *([0-7]+)[ \0]+|([0-7]+)")
_ZIP_MEMBER = struct.Struct("<4s5H3L2H")
_ZIP_END = struct.Struct("<4s4H2LH")
_ZIP64_END = struct.Struct("<4sQ2H2L4Q")
_ZIP64_ENDS = _ZIP64_END.size + 20 + _ZIP_END.size

_Kind = Literal["file", "folder", "link", "hard link"]


class RefusedError(Exception):
    """A package that two readers may understand differently, or that is too large; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of a package.

    `target` is what a link names: any path for a symbolic one, an earlier member for a hard one.
    """

    name: str
    kind: _Kind
    size: int = 0
    executable: bool = False
    target: str = ""


#: The contents of a member in blocks, which must be taken before the next member.
Blocks = Callable[[], Iterator[bytes]]


def read_package(path: Path) -> PackageMetadata:
    """The metadata of a package file, `.conda` or `.tar.bz2`."""
    return read_package_and(path, ())[0]


def read_package_and(path: Path, names: Sequence[str]) -> tuple[PackageMetadata, dict[str, bytes | None]]:
    """The metadata of a package file and some more files of it, in one pass."""
    found = read_documents(path, (*_METADATA, *names))
    with _of_package(path):
        return _metadata(found), {name: found[name] for name in names}


def read_documents(path: Path, names: Sequence[str]) -> dict[str, bytes | None]:
    """Some files of a package by their paths in it, in the requested order; None for a missing one.

    Of a `.conda` only the parts with these files are unpacked.
    """
    parts = [part for part in MOST_MEMBERS if any(name.startswith("info/") == (part == "info") for name in names)]
    wanted, found = set(names), dict[str, bytes]()
    with _of_package(path):
        for entry, blocks in members(path, parts):
            if entry.name in wanted:
                found[entry.name] = _document(entry, blocks)
    return {name: found.get(name) for name in names}


def read_hash_input(path: Path) -> dict[str, Any]:
    """What the hash in the name of a package is made of (`info/hash_input.json`); empty for one without a hash.

    Raises:
        WorkError: as for `read_package`, or its document is no JSON.
    """
    (document,) = read_documents(path, (_HASH_INPUT,)).values()
    try:
        content = parse_document(document or b"{}")
    except (ValueError, RecursionError) as error:
        raise WorkError(f"its {_HASH_INPUT} is invalid", path=path) from error
    return content if isinstance(content, dict) else {}


def verify_package(path: Path) -> PackageMetadata:
    """The metadata of a package, after all of it was read: its contents must be those that `info/paths.json` lists."""
    documents: dict[str, bytes | None] = dict.fromkeys((*_METADATA, _PATHS))
    contents: dict[str, tuple[_Kind, int, str]] = {}
    with _of_package(path):
        for entry, blocks in members(path):
            if entry.name in documents:
                documents[entry.name] = _document(entry, blocks)
            elif entry.kind == "hard link":
                contents[entry.name] = contents.get(entry.target, ("file", 0, ""))
            elif entry.kind != "folder" and not entry.name.startswith("info/"):
                digest = sha256()
                for block in blocks():
                    digest.update(block)
                contents[entry.name] = entry.kind, entry.size, digest.hexdigest()
        listed = documents[_PATHS]
        if listed is not None:
            _compare(parse_document(listed)["paths"], contents)
        return _metadata(documents)


def unpack(path: Path, folder: Path) -> None:
    """Unpack a package into a folder.

    Raises:
        WorkError: as for `read_package`, or it cannot be written.
    """
    is_new = not folder.exists()
    with _of_package(path):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for entry, blocks in members(path):
                _write(folder, entry, blocks)
        except BaseException:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def unpack_own(path: Path, folder: Path) -> None:
    """Unpack a package that was made here into a folder, whatever its size.

    Raises:
        WorkError: the package is missing or damaged.
    """
    from rattler.package_streaming import extract

    try:
        extract(path, folder)
    except Exception as error:  # rattler raises several types, among them plain Exception, for a damaged archive
        raise WorkError(f"this is not a readable conda package: {error}", path=path) from error


def _write(folder: Path, entry: Entry, blocks: Blocks) -> None:
    place = folder / entry.name
    if entry.kind == "folder":
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind == "link":
        place.symlink_to(entry.target)
    elif entry.kind == "hard link":
        place.hardlink_to(folder / entry.target)
    else:
        with place.open("xb") as stream:
            for block in blocks():
                stream.write(block)
        if entry.executable:
            place.chmod(0o755)


def members(path: Path, parts: Sequence[str] = tuple(MOST_MEMBERS)) -> Iterator[tuple[Entry, Blocks]]:
    """Every member of some parts of a package (`info`, `pkg`), and of a `.tar.bz2` of both; take all of them.

    Raises:
        RefusedError, OSError, EOFError, zipfile.BadZipFile: it is ambiguous, too large or damaged.
    """
    tree = _Tree()
    with open_file(path, within=None) as stream, temporary_folder() as folder:
        size = os.fstat(stream.fileno()).st_size
        largest, most_files = unpacked_size(size), plausible_file_count(size)
        if path.name.endswith(PACKAGE_SUFFIXES[1]):
            unzipped = cast("BinaryIO", io.BufferedReader(_OneBzip2(stream, largest), _PIECE))
            yield from _tar_members(unzipped, tree, None, min(most_files, MOST_MEMBERS["pkg"]))
            return
        archive, found = _parts_of(stream, size)
        for part in parts:
            with _unpacked(archive, found[part], folder / part, largest) as tar:
                yield from _tar_members(tar, tree, part, min(most_files, MOST_MEMBERS[part]))


def unpacked_size(size: int) -> float:
    """The bytes that a package file of this size may unpack to: more than any real one does."""
    return most(_UNPACKED_BASE + _UNPACKED_TIMES * size)


def plausible_file_count(size: int) -> int:
    """The files that an archive of this size in bytes may have: more than any real one does.

    >>> plausible_file_count(0), plausible_file_count(10_000_000)
    (10000, 50000)
    """
    return _FILES_BASE + size // _BYTES_OF_A_FILE


def parse_document(text: bytes) -> Any:
    """A JSON document of a package as every reader understands it; one of `DAMAGED` if they may not."""
    return json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_number)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a document has {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


@contextmanager
def _of_package(path: Path) -> Iterator[None]:
    """Make every error of reading one about the package."""
    try:
        yield
    except RefusedError as error:
        raise WorkError(f"this package is refused: {error}", path=path, hint=error.hint) from error
    except UNREADABLE as error:
        raise WorkError(f"this is not a readable conda package: {error}", path=path) from error


def _metadata(documents: dict[str, bytes | None]) -> PackageMetadata:
    index, about, exports = (parse_document(text) if (text := documents[name]) else None for name in _METADATA)
    if index is None:
        raise ValueError("the package has no info/index.json")
    return PackageMetadata.from_json(index, about or {}, exports or {})


def _document(entry: Entry, blocks: Blocks) -> bytes:
    if entry.kind != "file":
        raise RefusedError(f"{entry.name} is not a regular file but a {entry.kind}")
    if entry.size > most(LARGEST_DOCUMENT):
        raise RefusedError(f"{entry.name} has {entry.size} bytes", LIFTING)
    return b"".join(blocks())


def _compare(listed: list[dict[str, Any]], contents: dict[str, tuple[_Kind, int, str]]) -> None:
    """Compare the contents of a package with its own list of them."""
    described = [each for each in listed if each.get("path_type") != "directory"]
    files = {each["_path"]: each for each in described}
    if len(files) < len(described):
        raise RefusedError(f"{_PATHS} lists a file twice")
    for name in sorted(files.keys() ^ contents.keys()):
        raise RefusedError(f"{name!r} is in {_PATHS} only" if name in files else f"{name!r} is not in {_PATHS}")
    for name, (kind, size, digest) in contents.items():
        is_link = files[name].get("path_type") == "softlink"
        same = is_link or (files[name].get("size_in_bytes", size), files[name].get("sha256", digest)) == (size, digest)
        if not same or is_link != (kind == "link"):
            raise RefusedError(f"{name!r} is not the file that {_PATHS} describes")


@dataclass(slots=True)
class _Tree:
    """The members so far: each name once, and no file where another member has a folder.

    Contents may differ in case alone, as terminfo's do. Documents of `info/` may not, and nothing may lie below a link
    where case does not count: there, the one would take the place of the other, and a link would lead elsewhere.
    """

    kinds: dict[str, _Kind] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)
    #: As any file system may compare them: documents by their names, folders and links.
    _documents: dict[str, str] = field(default_factory=dict)
    _folded: set[str] = field(default_factory=set)
    _links: set[str] = field(default_factory=set)

    def add(self, entry: Entry) -> None:
        name = entry.name
        if name in self.kinds:
            raise RefusedError(f"it has two members {name!r}")
        folded = _on_any_system(name)
        if folded.startswith("info/") or folded == "info":
            other = self._documents.setdefault(folded, name) if folded.count("/") < 2 else name
            if other != name or not (name == "info" or name.startswith("info/")):
                raise RefusedError(f"{name!r} is {other if other != name else 'metadata'!r} where case does not count")
        if entry.kind == "link":
            if folded in self._folded:
                raise RefusedError(f"{name!r} is a link with members below it where case does not count")
            self._links.add(folded)
        if name in self._folders and entry.kind != "folder":
            raise RefusedError(f"{name!r} is a {entry.kind} with members below it")
        above = name
        while above := above.rpartition("/")[0]:
            if self.kinds.get(above, "folder") != "folder":
                raise RefusedError(f"{name!r} is below {above!r}, which is a {self.kinds[above]}")
            if above in self._folders:
                break
            self._folders.add(above)
            self._folded.add(_on_any_system(above))
            if _on_any_system(above) in self._links:
                raise RefusedError(f"{name!r} is below a link where case does not count")
        other_part = name.startswith("info/") is not entry.target.startswith("info/")
        if entry.kind == "hard link" and (other_part or self.kinds.get(entry.target) != "file"):
            raise RefusedError(
                f"{name!r} is a hard link to {entry.target!r}, which is not a file before it in its part"
            )
        self.kinds[name] = entry.kind


def _on_any_system(name: str) -> str:
    """A name as the file system that distinguishes fewest takes it: macOS in Unicode, Windows at its end."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", without_unseen(name))
    return re.sub(r"[. ]*(:[^/]*)?(?=/|$)", "", name.casefold())


def _parts_of(stream: BinaryIO, size: int) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    """The parts of a `.conda`: its members follow each other without a gap, stored, each named once."""
    archive = zipfile.ZipFile(stream)
    listed = archive.infolist()
    if _directory_of(stream, size) != (archive.start_dir, len(listed)):
        raise RefusedError("it has bytes before or after its zip")
    found: dict[str, zipfile.ZipInfo] = {}
    stems = set()
    place = 0
    for each in sorted(listed, key=lambda member: member.header_offset):
        name = each.orig_filename
        part = _PART.fullmatch(name)
        if part is None and name != FORMAT.name:
            raise RefusedError(f"a conda package has no member {name!r}")
        kind = part[1] if part else name
        if kind in found:
            raise RefusedError(f"it has two members {kind!r}: {found[kind].orig_filename!r} and {name!r}")
        if each.header_offset != place:
            raise RefusedError(f"{name!r} does not begin where the member before it ends")
        found[kind] = each
        place = _end_of_header(stream, each)
        if part:
            stems.add(part[2])
            _check_frame(stream, place, place + each.file_size, name)
        place += each.file_size
    if place != archive.start_dir:
        raise RefusedError("it has bytes between its members and its directory")
    for kind in (*MOST_MEMBERS, FORMAT.name):
        if kind not in found:
            named = f"{kind}-*" if kind in MOST_MEMBERS else kind
            raise zipfile.BadZipFile(f"it has no member named {named}")
    if len(stems) > 1:
        raise RefusedError(f"its parts belong to different packages: {' and '.join(sorted(stems))}")
    return archive, found


def _directory_of(stream: BinaryIO, size: int) -> tuple[int, int]:
    """Where the directory of a zip begins, and its number of members, as the last bytes of the file have it."""
    stream.seek(max(0, size - _ZIP64_ENDS))
    ends = stream.read(_ZIP64_ENDS)
    magic, *numbers, comment = _ZIP_END.unpack(ends[-_ZIP_END.size :])
    end = size - _ZIP_END.size
    if ends[_ZIP64_END.size :].startswith(b"PK\6\7"):
        end = size - _ZIP64_ENDS
        magic64, _, _, _, *numbers64 = _ZIP64_END.unpack(ends[: _ZIP64_END.size])
        unset = (0xFFFF,) * 4 + (0xFFFFFFFF,) * 2
        if magic64 != b"PK\6\6" or any(a not in (b, c) for a, b, c in zip(numbers, numbers64, unset, strict=True)):
            raise RefusedError("its two ends differ")
        numbers = numbers64
    disk, first, here, count, length, start = numbers
    if magic != b"PK\5\6" or comment or disk or first or here != count or start + length != end:
        raise RefusedError("it has bytes before or after its zip")
    return start, count


def _end_of_header(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Where the contents of a member begin, if the header before them says what the directory says."""
    stream.seek(member.header_offset)
    header = stream.read(_ZIP_MEMBER.size)
    magic, _, flags, method, _, _, crc, packed, size, length, extra_length = _ZIP_MEMBER.unpack(header)
    name, extra = stream.read(length), stream.read(extra_length)
    if extra[:4] == b"\1\0\x10\0" and len(extra) == 20:
        sizes = struct.unpack("<2Q", extra[4:])
        if packed == size == 0xFFFFFFFF:
            size, packed = sizes
        if sizes == (size, packed):  # Python before 3.11.4 repeats them here, and so do packages of conda-build
            extra = b""
    its = (b"PK\3\4", 0, member.compress_type, member.CRC, member.file_size, member.compress_size)
    is_stored = (method, packed, member.flag_bits & ~0x800) == (zipfile.ZIP_STORED, size, 0)
    if (
        not is_stored
        or (magic, flags & ~0x800, method, crc, size, packed) != its
        or name != member.orig_filename.encode()
    ):
        raise RefusedError(f"the header of {member.filename!r} differs from the directory, or it is compressed")
    its_extra = member.extra
    if extra or (its_extra and its_extra[:4] != b"\1\0" + (len(its_extra) - 4).to_bytes(2, "little")):
        raise RefusedError(f"{member.filename!r} has fields of another kind than a size")
    return stream.tell()


def _check_frame(stream: BinaryIO, place: int, end: int, name: str) -> None:
    """Refuse a part that is not one Zstandard frame (RFC 8878): some readers stop after the first."""
    stream.seek(place)
    magic, flags = stream.read(4), int.from_bytes(stream.read(1), "little")
    is_single = flags >> 5 & 1
    if magic != b"\x28\xb5\x2f\xfd" or flags & 0b1011:
        raise RefusedError(f"{name!r} does not begin with a Zstandard frame that is read without a dictionary")
    place += 5 + (1 - is_single) + (is_single, 2, 4, 8)[flags >> 6]
    is_last = False
    while not is_last:
        stream.seek(place)
        block = int.from_bytes(stream.read(3), "little")
        is_last = bool(block & 1)
        place += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if place > end:
            raise EOFError(f"{name} ends too early")
    if place + (4 if flags & 4 else 0) != end:
        raise RefusedError(f"{name!r} has bytes after its Zstandard frame")


@contextmanager
def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, largest: float) -> Iterator[BinaryIO]:
    """The tar of a part, unpacked by rattler.

    rattler unpacks packages only. It gets one whose single file is the part, with a mark behind it: the file is said
    to be larger than it is, which ends in an error after all of it was written.
    """
    from rattler.package_streaming import extract

    limit = int(min(largest, 1 << 62))
    mark = secrets.token_bytes(32)
    header = TarInfo("tar")
    header.size = limit
    frames = (stored_frame(header.tobuf(GNU_FORMAT)),), blocks_of(archive, member), (stored_frame(mark),)
    wrapped, unpacked = folder / "part-1-0.conda", folder / "unpacked"
    folder.mkdir()
    with wrapped.open("wb") as stream:
        empty = (stored_frame(bytes(2 * BLOCKSIZE)),)
        named = Member("pkg-part-1-0.tar.zst", chain(*frames)), Member("info-part-1-0.tar.zst", empty)
        write_members(stream, (FORMAT, *named))
    with suppress(Exception):  # the mark shows whether all was unpacked
        extract(wrapped, unpacked)
    wrapped.unlink()
    tar = unpacked / header.name
    size = tar.stat().st_size if tar.is_file() else 0
    if size >= limit:
        raise RefusedError(f"{member.filename} unpacks to more than {limit // 1_000_000} MB", LIFTING)
    with tar.open("r+b") as stream:
        stream.seek(max(0, size - len(mark)))
        if stream.read() != mark:
            raise EOFError(f"{member.filename} cannot be unpacked")
        stream.truncate(size - len(mark))
        stream.seek(0)
        yield stream
    tar.unlink()


class _OneBzip2(io.RawIOBase):
    """The contents of a file that is one bzip2 stream: some readers stop after the first."""

    def __init__(self, packed: BinaryIO, largest: float) -> None:
        self._packed, self._left, self._all = packed, largest, largest
        self._stream = bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = b""
        while not part and not self._stream.eof:
            packed = self._packed.read(_PIECE) if self._stream.needs_input else b""
            if self._stream.needs_input and not packed:
                raise EOFError("it ends too early")
            part = self._stream.decompress(packed, len(buffer))
        if self._stream.eof and (self._stream.unused_data or self._packed.read(1)):
            raise RefusedError("it has bytes after its bzip2 stream")
        self._left -= len(part)
        if self._left < 0:
            raise RefusedError(f"it unpacks to more than {self._all // 1_000_000:.0f} MB", LIFTING)
        buffer[: len(part)] = part
        return len(part)


def _tar_members(stream: BinaryIO, tree: _Tree, part: str | None, count: int) -> Iterator[tuple[Entry, Blocks]]:
    """The members of a tar that every reader takes for the same; `part` is the one of a `.conda` that it is."""
    longer: dict[str, str | int] = {}
    before: set[bytes] = set()
    left = most(count)
    while (block := _exactly(stream, BLOCKSIZE)) != bytes(BLOCKSIZE):
        kind, size = _checked_header(block)
        if kind in _LONG or kind == _POSIX:
            content = _exactly(stream, _padded(size))[:size] if size <= _LONGEST else None
            if content is None:
                raise RefusedError(f"the name of a member has {size} bytes")
            said = _posix(content) if kind == _POSIX else {_LONG[kind]: _text(content.removesuffix(b"\0"))}
            if longer.keys() & said.keys():
                raise RefusedError(f"a member has two {' and two '.join(sorted(longer.keys() & said.keys()))}")
            if kind in before:
                raise RefusedError("a member has two headers of one kind before it")
            longer |= said
            before.add(kind)
            continue
        entry = _entry(block, kind, size, longer)
        longer, before = {}, set()
        inside = entry.name == "info" or entry.name.startswith("info/")
        if part is not None and inside != (part == "info"):
            raise RefusedError(f"{entry.name!r} is in the part {part!r}")
        tree.add(entry)
        left -= 1
        if left < 0:
            raise RefusedError(f"it has more than {count} entries", LIFTING)
        content_of = _Content(stream, entry.size)
        yield entry, content_of.blocks
        content_of.skip()
    if before:
        raise RefusedError("it ends with the name of a member that does not follow")
    ending = _exactly(stream, BLOCKSIZE)
    while ending:
        if ending.strip(b"\0"):
            raise RefusedError("it has members after the end of its tar")
        ending = stream.read(_PIECE)


@dataclass(slots=True)
class _Content:
    """The content of the current member."""

    stream: BinaryIO
    size: int
    left: int = -1

    def blocks(self) -> Iterator[bytes]:
        if self.left < 0:
            self.left = self.size
        while self.left > 0:
            block = _exactly(self.stream, min(self.left, _PIECE))
            self.left -= len(block)
            yield block
        _exactly(self.stream, _padded(self.size) - self.size)

    def skip(self) -> None:
        if self.left < 0:
            for _ in self.blocks():
                pass


def _padded(size: int) -> int:
    return size + -size % BLOCKSIZE


def _exactly(stream: BinaryIO, size: int) -> bytes:
    block = stream.read(size)
    if len(block) < size:
        raise EOFError("its tar ends too early")
    return block


def _checked_header(block: bytes) -> tuple[bytes, int]:
    """The kind and the size of what follows a header of ustar or GNU's tar."""
    form = block[257:265]
    total = sum(block) - sum(block[148:156]) + 8 * 0x20
    if form not in (b"ustar\00000", b"ustar  \0") or _number(block[148:156]) != total:
        raise RefusedError("the header of a member is damaged, or of a form that readers take differently")
    if form == b"ustar  \0" and block[345:500].strip(b"\0"):
        raise RefusedError(f"the header of {_text(_until_nul(block[:100]))!r} has fields of a sparse file or a time")
    return block[156:157], _number(block[124:136])


def _entry(block: bytes, kind: bytes, size: int, longer: dict[str, str | int]) -> Entry:
    name, target = _text(_until_nul(block[:100])), _text(_until_nul(block[157:257]))
    if block[257:265] == b"ustar\00000" and (above := _text(_until_nul(block[345:500]))):
        name = f"{above}/{name}"
    name, target = str(longer.get("path", name)), str(longer.get("linkpath", target))
    if kind not in _KINDS:
        raise RefusedError(f"{name!r} is not a file, a folder or a link")
    what = _KINDS[kind]
    if longer.get("size", size) != size or (what != "file" and size):
        raise RefusedError(f"{name!r} has a second size")
    return Entry(
        _plain(name.removesuffix("/") if what == "folder" else name),
        what,
        size,
        executable=bool(_number(block[100:108]) & 0o100),
        target=_plain(target) if what == "hard link" else target,
    )


def _plain(name: str) -> str:
    """A name that is the same path for every reader: no `./x`, `x//y`, `x/../y`, `/x` or `x/`."""
    if len(name) > _LONGEST_PATH:
        raise RefusedError(f"the path {name[:80]!r}… has {len(name)} characters")
    if {"", ".", ".."} & set(name.split("/")) or (os.name == "nt" and set(name) & set("\\:")):
        raise RefusedError(f"the path {name!r} is not written plainly, or leads out of the package")
    return name


def _posix(content: bytes) -> dict[str, str | int]:
    """What an extended header says: names and a size."""
    found: dict[str, str | int] = {}
    place = 0
    while place < len(content):
        space = content.find(b" ", place, place + 8)
        length = content[place:space] if space > 0 else b""
        end = place + int(length) if length.isdigit() else 0
        key, _, value = content[space + 1 : end - 1].partition(b"=")
        if end <= space or content[end - 1 : end] != b"\n" or key.decode("latin-1") in found:
            raise RefusedError("the extended header of a member is damaged, or says something twice")
        if key in (b"path", b"linkpath"):
            found[key.decode()] = _text(value)
        elif key == b"size" and value.isdigit():
            found["size"] = int(value)
        elif not _PLAIN_KEYS.fullmatch(key):
            raise RefusedError(f"the extended header of a member has the key {key[:40]!r}")
        place = end
    return found


def _text(name: bytes) -> str:
    if b"\0" in name:
        raise RefusedError(f"the name {name[:80]!r} has a NUL")
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(f"the name {name[:80]!r} is not UTF-8") from error


def _until_nul(name: bytes) -> bytes:
    return name.partition(b"\0")[0]


def _number(digits: bytes) -> int:
    found = _OCTAL.fullmatch(digits)
    if found is None:
        raise RefusedError(f"a header has {digits!r} where octal digits must be")
    return int(found[1] or found[2], 8)
