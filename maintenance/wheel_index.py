"""An index of wheels: which wheels of a project it has, and parts of them by ranges, without the whole files.

The index answers in JSON (PEP 691) at `<index>/<project>/`, and its files come from a server that serves ranges.
"""

# ruff: noqa: S310 - the index is the maintainer's own choice

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from feedstock_tools.versions import parse_version

_ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}
_NAME = re.compile(
    r"[^-]+-(?P<version>\d[\d.]*)(?:-(?P<build>\d+))?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>.+)\.whl$"
)
_TIMEOUT = 120
_CHUNK = 1 << 20
#: The header of a member: its length without name and extra fields, and where the lengths of those are.
_MEMBER_HEADER = 30
_MOST_EXTRA = 1 << 16


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel on an index; `sha256` is what the index says of it, `python` and `platform` are tags of its name."""

    project: str
    version: str
    build: int
    python: str
    platform: str
    filename: str
    url: str
    sha256: str
    size: int


def add_index_option(parser: argparse.ArgumentParser) -> None:
    """The option `--index`."""
    words = "A simple index that answers in JSON (PEP 691); by default the one that pip reads."
    parser.add_argument("--index", metavar="URL", default="", help=words)


@cache
def pip_index() -> str:
    """The index that pip reads, by its configuration, the environment or its own default.

    Raises:
        OSError: pip does not name one.
    """
    command = [sys.executable, "-m", "pip", "install", "--help"]
    wide = {**os.environ, "COLUMNS": "1000"}
    text = subprocess.run(command, capture_output=True, text=True, check=False, env=wide).stdout
    named = re.search(r"--index-url <url>.*?\(default\s+(\S+)\)", text, re.DOTALL)
    if named is None:
        raise OSError("pip names no index; give one with --index")
    return named[1]


def wheels_of(index: str, project: str) -> dict[str, list[Wheel]]:
    """The wheels of a project's releases by version, without those that were withdrawn, betas and posts.

    An empty `index` is the one that pip reads.

    Raises:
        OSError: the index does not answer, or does not have the project (urllib.error.HTTPError).
    """
    request = urllib.request.Request(f"{(index or pip_index()).rstrip('/')}/{project}/", headers=_ACCEPT)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        document = json.load(answer)
    found: dict[str, list[Wheel]] = {}
    for file in document["files"]:
        match = _NAME.match(file["filename"])
        if match and not file.get("yanked"):
            found.setdefault(match["version"], []).append(_wheel(project, match, file))
    return found


def _wheel(project: str, match: re.Match[str], file: dict[str, Any]) -> Wheel:
    return Wheel(
        project=project,
        version=match["version"],
        build=int(match["build"] or 0),
        python=match["python"],
        platform=match["platform"],
        filename=file["filename"],
        url=file["url"],
        sha256=file["hashes"].get("sha256", ""),
        size=int(file.get("size", 0)),
    )


def first_and_last_of_minors(versions: Iterable[str]) -> list[str]:
    """The first and the last release of each minor version, oldest first; one where that is the same.

    >>> first_and_last_of_minors(["9.1.0.70", "9.0.0.312", "9.1.2", "9.1.1.17"])
    ['9.0.0.312', '9.1.0.70', '9.1.2']
    """
    minors: dict[tuple[str, ...], list[str]] = {}
    for version in sorted(versions, key=parse_version):
        minors.setdefault(tuple(version.split(".")[:2]), []).append(version)
    return [version for group in minors.values() for version in dict.fromkeys((group[0], group[-1]))]


class Ranges(io.RawIOBase):
    """A file on a server, read by ranges, for zipfile."""

    def __init__(self, url: str) -> None:
        self._url, self._at = url, 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_TIMEOUT) as answer:
            self._size = int(answer.headers["Content-Length"])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        with _range(self._url, self._at, end - 1) as answer:
            data = answer.read(end - self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


@contextmanager
def _range(url: str, first: int, last: int) -> Iterator[BinaryIO]:
    """The bytes of a file on a server from the first to the last."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={first}-{last}"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        if answer.status != 206:
            raise OSError("the server does not serve ranges")
        yield answer


@contextmanager
def archive(url: str) -> Iterator[zipfile.ZipFile]:
    """A wheel on a server as an archive; its members are read by ranges."""
    with zipfile.ZipFile(io.BufferedReader(Ranges(url), 1 << 16)) as opened:
        yield opened


def copy_member(url: str, member: zipfile.ZipInfo, target: Path) -> str:
    """Unpack a member of a wheel on a server into a file, piece by piece; return its SHA-256.

    One request and pieces of a megabyte: `zipfile` over ranges takes four times the processor time.

    Raises:
        OSError: the server does not answer, or the content is not what the archive's directory says.
    """
    first = member.header_offset
    length = _MEMBER_HEADER + len(member.filename.encode()) + _MOST_EXTRA + member.compress_size
    digest, check, left = hashlib.sha256(), 0, member.compress_size
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.compress_type == zipfile.ZIP_DEFLATED else None
    with _range(url, first, first + length - 1) as answer, target.open("wb") as copy:
        name, extra = struct.unpack_from("<HH", answer.read(_MEMBER_HEADER), 26)
        answer.read(name + extra)
        while left and (packed := answer.read(min(_CHUNK, left))):
            left -= len(packed)
            piece = inflate.decompress(packed) if inflate else packed
            copy.write(piece)
            digest.update(piece)
            check = zlib.crc32(piece, check)
    if left or check != member.CRC:
        raise OSError(f"{member.filename} is damaged or cut off")
    return digest.hexdigest()


def copy_wheel(wheel: Wheel, target: Path) -> None:
    """Load a whole wheel into a file.

    Raises:
        OSError: the server does not answer, or the file is not the one that the index names by its SHA-256.
    """
    digest = hashlib.sha256()
    with urllib.request.urlopen(wheel.url, timeout=_TIMEOUT) as answer, target.open("wb") as copy:
        while piece := answer.read(_CHUNK):
            copy.write(piece)
            digest.update(piece)
    if digest.hexdigest() != wheel.sha256:
        raise OSError(f"{wheel.filename} is not the file that the index names")
