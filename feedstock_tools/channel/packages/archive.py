"""Conda packages as files: writing one from metadata and contents, changing its metadata, comparing two.

A package written here has the same bytes whenever its metadata and contents are the same. Its inner archives are
Zstandard frames of stored (not compressed) blocks, so that no compression library is needed and its version cannot
change the bytes; most packages written here stay on this machine, where copying is cheaper than compressing.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages import packing
from feedstock_tools.channel.packages.reading import RefusedError, members, unpack
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.files.changes import replacing
from feedstock_tools.files.temporary import temporary_folder

#: Bytes of a text whose lines are compared, and the lines of a difference that are kept.
_LARGEST_TEXT = 1 << 20
_MOST_LINES = 40

#: A file of `paths.json` as `json.dumps(..., indent=2)` would write it, whose indenting encoder is slow pure Python.
_FILE = json.JSONEncoder(sort_keys=True, separators=(",\n      ", ": "))


def write_package(folder: Path, metadata: PackageMetadata, files: Iterable[PackageFile] = ()) -> Path:
    """Write a `.conda` package into the subdir of a channel folder, and return its path.

    The package appears under its name only when it is complete. It is not indexed: see `index_channel`.

    Args:
        folder: the channel folder; the subdir of the package is created in it.
        metadata: the contents of `info/index.json`, `about.json` and `run_exports.json`.
        files: the contents, in any order, each path once.
    """
    contents = sorted(files, key=lambda file: file.path)
    path = folder / metadata.subdir / metadata.file_name
    with replacing(path, message="cannot write the package") as part, part.open("wb") as stream:
        _write_conda(stream, metadata, contents)
    return path


def replace_document(path: Path, name: str, content: bytes) -> None:
    """Replace the text of a file in the `info` part of a `.conda` package; its contents stay unchanged.

    Raises:
        WorkError: the package is damaged or cannot be written, or has no such file.
    """
    try:
        replaced = packing.stored_frame(_info_with(path, name, content))
        with (
            replacing(path, message="cannot write the package") as part,
            zipfile.ZipFile(path) as archive,
            part.open("wb") as stream,
        ):
            info = packing.members_of(archive, "info")
            parts = (
                packing.Member(each.filename, (replaced,) if each in info else packing.blocks_of(archive, each))
                for each in archive.infolist()
            )
            packing.write_members(stream, parts)
    except (OSError, EOFError, zipfile.BadZipFile, RefusedError) as error:
        raise WorkError(f"cannot write the package: {error}", path=path) from error


def combine(path: Path, contents: Path, unpacked: Path, documents: Mapping[str, bytes], epoch: int) -> None:
    """Replace a `.conda` package by one with the packed contents of another, and with the metadata of a folder.

    Args:
        contents: the package whose contents are taken, as they are packed.
        unpacked: the folder with `info/`.
        documents: path in the package → content that replaces the one in the folder.
        epoch: the time of the metadata, in seconds since 1970.

    Raises:
        WorkError: a package cannot be read or written.
    """
    stem = path.name.removesuffix(".conda")
    try:
        info = packing.stored_frame(b"".join(_packed_info(unpacked, documents, epoch)))
        with (
            replacing(path, message="cannot write the package") as part,
            zipfile.ZipFile(contents) as other,
            part.open("wb") as stream,
        ):
            packed, *_ = packing.members_of(other, "pkg")
            parts = (
                packing.FORMAT,
                packing.Member(f"pkg-{stem}.tar.zst", packing.blocks_of(other, packed)),
                packing.Member(f"info-{stem}.tar.zst", (info,), len(info)),
            )
            packing.write_members(stream, parts)
    except (OSError, zipfile.BadZipFile) as error:
        raise WorkError(f"cannot write the package: {error}", path=path) from error


def _info_with(path: Path, name: str, content: bytes) -> bytes:
    """The tar of the `info` part of a package, with a new text for one of its files."""
    tar: list[bytes] = []
    is_replaced = False
    for entry, blocks in members(path, ("info",)):
        is_it = entry.name == name
        is_replaced = is_replaced or is_it
        if entry.kind == "link":
            packing.add_entry(tar, entry.name, b"", 0, link=entry.target)
        elif entry.kind == "file":
            packing.add_entry(tar, entry.name, content if is_it else b"".join(blocks()), 0)
    if not is_replaced:
        raise WorkError(f"the package has no {name}", path=path)
    return b"".join(packing.ended(tar))


def _packed_info(unpacked: Path, documents: Mapping[str, bytes], epoch: int) -> list[bytes]:
    """The tar of the `info` part of an unpacked package, with some documents replaced; see `combine`."""
    tar: list[bytes] = []
    for file in sorted(each for each in (unpacked / "info").rglob("*") if each.is_symlink() or each.is_file()):
        name = file.relative_to(unpacked).as_posix()
        if file.is_symlink():
            packing.add_entry(tar, name, b"", epoch * 1000, link=os.readlink(file))  # noqa: PTH115
        else:
            content = documents[name] if name in documents else file.read_bytes()
            packing.add_entry(tar, name, content, epoch * 1000, executable=bool(file.stat().st_mode & 0o100))
    return packing.ended(tar)


def _write_conda(stream: BinaryIO, metadata: PackageMetadata, files: Sequence[PackageFile]) -> None:
    stem = metadata.file_name.removesuffix(".conda")
    package, paths = _package_archive(files, metadata.timestamp)
    info = _info_archive(metadata, paths)
    parts = (
        packing.FORMAT,
        packing.Member(f"pkg-{stem}.tar.zst", packing.stored_blocks(package), sum(map(len, package))),
        packing.Member(f"info-{stem}.tar.zst", packing.stored_blocks(info), sum(map(len, info))),
    )
    packing.write_members(stream, parts)


def _package_archive(files: Sequence[PackageFile], timestamp: int) -> tuple[list[bytes], list[dict[str, object]]]:
    """The tar of the contents, in parts, and their entries in `info/paths.json`."""
    archive: list[bytes] = []
    paths: list[dict[str, object]] = []
    for file in files:
        entry: dict[str, object] = {"_path": file.path}
        if file.link is not None:
            packing.add_entry(archive, file.path, b"", timestamp, link=file.link)
            # conda records the hash of the link's target; nothing reads it for a link on installation.
            entry |= {"path_type": "softlink", "sha256": sha256(b"").hexdigest(), "size_in_bytes": 0}
        else:
            content = file.read()
            packing.add_entry(archive, file.path, content, timestamp, executable=file.executable)
            entry |= {"path_type": "hardlink", "sha256": sha256(content).hexdigest(), "size_in_bytes": len(content)}
            if file.prefix is not None and file.prefix.encode() in content:
                entry |= {"prefix_placeholder": file.prefix, "file_mode": "text"}
        paths.append(entry)
    return packing.ended(archive), paths


def _info_archive(metadata: PackageMetadata, paths: list[dict[str, object]]) -> list[bytes]:
    documents: dict[str, object] = {"info/about.json": metadata.about_json(), "info/index.json": metadata.index_json()}
    if metadata.run_exports:
        documents["info/run_exports.json"] = metadata.run_exports.to_json()
    if metadata.noarch == "python":
        noarch: dict[str, object] = {"type": "python"}
        if metadata.entry_points:
            noarch["entry_points"] = list(metadata.entry_points)
        documents["info/link.json"] = {"noarch": noarch, "package_metadata_version": 1}
    texts = {name: json.dumps(document, indent=2, sort_keys=True) for name, document in documents.items()}
    texts["info/paths.json"] = _paths_json(paths)
    archive: list[bytes] = []
    for name, text in sorted(texts.items()):
        packing.add_entry(archive, name, f"{text}\n".encode(), metadata.timestamp)
    return packing.ended(archive)


def _paths_json(paths: Iterable[Mapping[str, object]]) -> str:
    """The same text as `json.dumps(..., indent=2, sort_keys=True)`, in a fifth of the time.

    >>> paths = [{"_path": "a", "size_in_bytes": 0}, {"_path": "b", "size_in_bytes": 1}]
    >>> document = {"paths": paths, "paths_version": 1}
    >>> _paths_json(paths) == json.dumps(document, indent=2, sort_keys=True)
    True
    """
    files = ",\n    ".join(f"{{\n      {_FILE.encode(path)[1:-1]}\n    }}" for path in paths)
    listed = f"[\n    {files}\n  ]" if files else "[]"
    return f'{{\n  "paths": {listed},\n  "paths_version": 1\n}}'


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
