"""Packages and JSON made to exhaust, to crash or to deceive their readers, and the pieces that they are made of."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from feedstock_tools.channel.packages.packing import stored_frame as stored

#: A Zstandard frame of blocks of 128 KiB (RFC 8878), stored or of one repeated byte.
_FRAME = bytes((0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38))
BLOCK = 128 * 1024
INDEX = {"name": "bomb", "version": "1", "build": "0", "build_number": 0, "subdir": "noarch", "depends": []}
#: The end of a tar.
END = bytes(1024)


def zeros(size: int) -> bytes:
    """A frame of a few bytes for each 128 KiB of zeros."""
    block = (BLOCK << 3 | 2).to_bytes(3, "little") + b"\0"
    last = (BLOCK << 3 | 3).to_bytes(3, "little") + b"\0"
    return _FRAME + block * (size // BLOCK - 1) + last


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """The header of a member of a tar."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = size, kind, link
    return entry.tobuf(tarfile.GNU_FORMAT)


def member(name: str, content: bytes) -> bytes:
    """A file in a tar."""
    return header(name, len(content)) + content + bytes(-len(content) % 512)


PLAIN = stored(member("info/index.json", json.dumps(INDEX).encode()) + END)


def conda(folder: Path, info: bytes = PLAIN, pkg: bytes | None = None, name: str = "bomb-1-0") -> Path:
    """A `.conda` of two frames."""
    path = folder / f"{name}.conda"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
        archive.writestr(f"pkg-{name}.tar.zst", stored(END) if pkg is None else pkg)
        archive.writestr(f"info-{name}.tar.zst", info)
    return path


_PATHS = (
    *("lib/a.so", "../outside/a", "../../outside/a", "info/index.json", "info/../../../outside/b", "a/" * 400 + "b"),
    *(".", "", "/", "con", "a\\b", "a:b", "\x1b[2J", "a" * 300, "lib", "lib/../lib/c", "info/paths.json"),
    "./info/about.json",
)
_LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"x", b"g")
_KINDS = (*(tarfile.REGTYPE,) * 9, *_LINKS)
_GPU = (
    *(bytes.fromhex("50ed55ba01001000"), bytes.fromhex("50ed55ba01001000") + (999).to_bytes(8, "little")),
    *(b"\x7fELF\x02\x01\x01\x33" + bytes(10) + b"\xbe\0" + bytes(44), b".version 8.0\n.target sm_90a\n", b".version "),
    *(bytes(64), b"\xff" * 64, (2).to_bytes(4, "little") + (64).to_bytes(4, "little") + bytes(56)),
)


_ODD = (
    *("", "a", "\x1b[31m", "\ud800", "a\nb", "1.2.3", "../x", "x" * 500),
    *(None, True, -1, 2**70, 1e308, float("nan")),
)


def hostile_value(chance: random.Random, depth: int = 2) -> object:
    """A JSON value that the readers of metadata do not expect."""
    if depth <= 0 or chance.random() < 0.5:
        return chance.choice(_ODD)
    if chance.random() < 0.5:
        count = chance.choice((0, 1, 3, 20_000))
        return [hostile_value(chance, depth - 1 if count < 9 else 0) for _ in range(count)]
    return {str(chance.choice(_ODD)): hostile_value(chance, depth - 1) for _ in range(3)}


def spoiled(known: Mapping[str, object], chance: random.Random, most: int = 2) -> dict[str, object]:
    """A mapping with some values, or some keys, that are not what its reader expects."""
    made = dict(known)
    for key in chance.sample(sorted(made), min(len(made), chance.randrange(most + 1))):
        if chance.random() < 0.2:
            del made[key]
        else:
            made[key] = hostile_value(chance)
    if chance.random() < 0.1:
        made["another"] = hostile_value(chance)
    return made


def as_json(value: object, chance: random.Random) -> bytes:
    """A value as JSON, sometimes nested, cut or with a huge number in it."""
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    kind = chance.randrange(10)
    if kind == 0:
        return b"[" * chance.choice((10, 100_000)) + text
    if kind == 1:
        return text[: chance.randrange(len(text) + 1)]
    if kind == 2:
        return text.replace(b": 0", b": " + b"9" * chance.choice((50, 5000, 500_000)))
    return text


def _document(chance: random.Random) -> bytes:
    known = dict(INDEX)
    for key in chance.sample([*known, "noarch", "timestamp", "constrains", "track_features", "license"], 2):
        known[key] = hostile_value(chance)
    return as_json(known, chance)


def _contents(chance: random.Random, outside: Path) -> bytes:
    parts = []
    for _ in range(chance.choice((1, 3, 9, 300))):
        path, kind = chance.choice((*_PATHS, str(outside / "absolute"))), chance.choice(_KINDS)
        if kind == tarfile.REGTYPE:
            piece = b"".join(chance.choice(_GPU) for _ in range(chance.choice((0, 1, 9, 900))))
            parts.append(member(path, piece))
        else:
            parts.append(
                header(path, 0, kind, chance.choice(("../../outside", str(outside), "lib", "a" * 90, "/etc/passwd")))
            )
    return b"".join(parts)


def hostile_package(folder: Path, outside: Path, chance: random.Random) -> Path:
    """A package file in a folder; some of its paths lead to `outside`."""
    info = member("info/index.json", _document(chance)) + (_contents(chance, outside) if chance.random() < 0.3 else b"")
    if chance.random() < 0.2:
        info = _contents(chance, outside) + info
    pkg = _contents(chance, outside)
    size = chance.choice((1 << 20, 1 << 28, 8 << 30))
    frames = stored(info + END), stored(pkg + END)
    if chance.random() < 0.15:
        huge = stored(header(chance.choice(_PATHS), chance.choice((size, 1, 8 << 60)))) + zeros(size)
        frames = (huge + frames[0], frames[1]) if chance.random() < 0.5 else (frames[0], huge + frames[1])
    if chance.random() < 0.2:
        path = folder / "bomb-1-0.tar.bz2"
        path.write_bytes(bz2.compress(info + pkg + END, 1))
    else:
        path = conda(folder, *frames)
    if chance.random() < 0.3:
        path.write_bytes(_damaged(path.read_bytes(), chance))
    return path


def hostile_archive(folder: Path, outside: Path, chance: random.Random) -> Path:
    """An archive of any other kind in a folder, some with archives inside, whose paths lead to `outside`."""
    content = _contents(chance, outside) + END
    if chance.random() < 0.2:
        size = chance.choice((1 << 20, 1 << 26))
        content = header(chance.choice(_PATHS), chance.choice((size, 1, 8 << 60))) + bytes(size) + content
    for _ in range(chance.choice((1, 1, 2, 6))):
        packed = chance.choice((_zipped, gzip.compress, lzma.compress, bz2.compress, _tarred))(content)
        content = _damaged(packed, chance) if chance.random() < 0.2 else packed
    path = folder / chance.choice(("a.tar.gz", "a.zip", "a.whl", "liba.so", "a"))
    path.write_bytes(content)
    return path


def _zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("../../outside/a", "a", "b\x1b[2J"):
            archive.writestr(name, content)
    return stream.getvalue()


def _tarred(content: bytes) -> bytes:
    return member("../../outside/a", content) + member("a", content) + END


def _damaged(content: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut off or repeated."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 4, 40))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    start = chance.randrange(len(changed))
    return bytes(chance.choice((changed, changed[:start], changed[start:], changed + changed[start:])))


def hostile_repodata(chance: random.Random) -> bytes:
    """The repodata of a subdir."""
    entries = {f"bomb-1-{number}.conda": json.loads(json.dumps(INDEX)) for number in range(chance.choice((1, 9, 900)))}
    for entry in list(entries.values())[:3]:
        for key in chance.sample(list(INDEX), 2):
            entry[key] = hostile_value(chance)
    document: object = {"info": {"subdir": "noarch"}, chance.choice(("packages", "packages.conda")): entries}
    if chance.random() < 0.1:
        document = hostile_value(chance, 3)
    text = json.dumps(document).encode("utf-8", "surrogatepass")
    return _damaged(text, chance) if chance.random() < 0.3 else text
