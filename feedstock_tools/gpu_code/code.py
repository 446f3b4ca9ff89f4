"""The GPU code in files and packages, by its headers: NVIDIA's fat binaries, bare cubins and PTX as text.

The form of a fat binary was learned from the files that nvcc 11.8 to 13.0 write and from the output of `cuobjdump`;
NVIDIA does not document it. Compressed code needs no decompression: its header names its architecture.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from feedstock_tools.bounds.limits import LIFTING, most
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, unpack
from feedstock_tools.errors import WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.gpu_code.archives import Unread, files_of

_Bytes = bytes | mmap.mmap

#: A fat binary: magic number, version 1, length of this header, length of the entries that follow.
_FATBIN = struct.Struct("<IHHQ")
_FATBIN_MAGIC = bytes.fromhex("50ed55ba01001000")
#: One entry: kind, version, length of this header, of the code (padded), of the code where it is compressed, where its
#: options are, version of PTX or of cubins (minor, major), architecture, name (place, length), flags, -, full length.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _ELF = 1, 2
_KINDS = {_PTX: "PTX", _ELF: "machine code", 8: "LTO"}
#: Any of LZ4 (to 12.x) and Zstandard (since), and which architecture's special features the code uses.
_COMPRESSED = 0xF000
_SUFFIXES = {0x100000: "a", 0x200000: "f"}

#: An ELF file of 64 bits whose ABI is one of CUDA's (51 to nvcc 12, 65 since), and its machine, EM_CUDA.
_CUBIN = re.compile(rb"\x7fELF\x02\x01\x01[\x33\x41]")
_CUBIN_HEADER_LENGTH = 64
_EM_CUDA = 190
_OLD_ABI = 51
_OLD_ACCELERATED = 0x800
#: Before Hopper no architecture has special features, whatever the bit means there.
_FIRST_ACCELERATED = 90
#: Entries that are read, those of what turns out to be no fat binary included; each takes about a microsecond.
_MOST_STEPS = 500_000
_PTX_TEXT = re.compile(rb"\.version\s+\d+\.\d+\s+\.target\s+sm_(\d{2,3})([af]?)\b")
#: GPU architectures there are; anything else is not a header but bytes that look like one.
_NUMBERS = range(10, 1000)


@dataclass(frozen=True, slots=True)
class GpuCode:
    """A piece of GPU code.

    Attributes:
        architecture: `sm_86` for machine code and LTO's intermediate code, `compute_86` for PTX.
        kind: `machine code`, `PTX` or `LTO`, which cannot run before it is linked.
        compressed: whether it must be unpacked before it can be inspected.
        offset: its place in the file, in bytes.
        binary: the place of the fat binary that it is one of, whose pieces are the same kernels; None: it is in none.
    """

    architecture: Architecture
    kind: str
    compressed: bool
    offset: int
    binary: int | None = None


def gpu_code_in_file(path: Path) -> tuple[GpuCode, ...]:
    """Every piece of GPU code in a file: a library, a program, an archive, a fat binary, a cubin or PTX.

    Raises:
        WorkError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            if not path.stat().st_size:
                return ()
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return gpu_code_in_bytes(content)
    except WorkError as error:
        raise WorkError(error.mistakes[0].message, path=path, hint=LIFTING) from error
    except (OSError, ValueError) as error:
        raise WorkError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error


def gpu_code_in_bytes(content: _Bytes) -> tuple[GpuCode, ...]:
    """Like `gpu_code_in_file`, for a file's content, in the order of the code."""
    codes: list[GpuCode] = []
    inside: list[tuple[int, int]] = []  # the fat binaries in order, from their starts to their ends
    steps = 0
    start = content.find(_FATBIN_MAGIC)
    while start >= 0:
        end, entries, read = _fatbin(content, start)
        steps += read
        if steps > most(_MOST_STEPS):
            raise WorkError("has too many pieces that look like fat binaries", hint=LIFTING)
        if end:
            codes += entries
            inside.append((start, end))
        start = content.find(_FATBIN_MAGIC, end or start + 1)
    codes += [code for code in (*_cubins(content), *_texts(content)) if not _is_in(code.offset, inside)]
    return tuple(sorted(codes, key=lambda code: code.offset))


def _is_in(offset: int, places: Sequence[tuple[int, int]]) -> bool:
    before = bisect_right(places, offset, key=itemgetter(0))
    return before > 0 and offset < places[before - 1][1]


def _fatbin(content: _Bytes, start: int) -> tuple[int, list[GpuCode], int]:
    """The end of a fat binary, its contents, and the number of entries read; 0 and nothing if it is not one, or is cut
    off."""
    if start + _FATBIN.size > len(content):
        return 0, [], 1
    _, _, header, length = _FATBIN.unpack_from(content, start)
    at, end = start + header, start + header + length
    if end > len(content):
        return 0, [], 1
    codes = []
    steps = 1
    while at + _ENTRY.size <= end:
        steps += 1
        kind, _, header, length, packed, _, _, _, number, _, _, flags, _, _ = _ENTRY.unpack_from(content, at)
        if header < _ENTRY.size or number not in _NUMBERS or at + header + length > end:
            return 0, [], steps
        if kind in _KINDS:
            suffix = next((letter for bit, letter in _SUFFIXES.items() if flags & bit), "")
            architecture = Architecture(number, suffix, ptx=kind == _PTX)
            codes.append(GpuCode(architecture, _KINDS[kind], bool(packed or flags & _COMPRESSED), at, start))
        at += header + length
    return end, codes, steps


def _cubins(content: _Bytes) -> Iterator[GpuCode]:
    """Cubins outside of fat binaries, as in programs that load them by themselves."""
    for match in _CUBIN.finditer(content):
        at = match.start()
        if at + _CUBIN_HEADER_LENGTH > len(content):
            continue
        (machine,) = struct.unpack_from("<H", content, at + 18)
        (flags,) = struct.unpack_from("<I", content, at + 48)
        old = content[at + 7] == _OLD_ABI
        number = flags & 0xFF if old else flags >> 8 & 0xFF
        if machine == _EM_CUDA and number in _NUMBERS:
            suffix = "a" if old and flags & _OLD_ACCELERATED and number >= _FIRST_ACCELERATED else ""
            yield GpuCode(Architecture(number, suffix), "machine code", compressed=False, offset=at)


def _texts(content: _Bytes) -> Iterator[GpuCode]:
    for match in _PTX_TEXT.finditer(content):
        number = int(match[1])
        if number in _NUMBERS:
            yield GpuCode(Architecture(number, match[2].decode(), ptx=True), "PTX", False, match.start())


def contents(path: Path) -> Mapping[str, tuple[GpuCode, ...] | Unread]:
    """The GPU code of a package, an archive, a folder or a single file, by the file's path in it.

    Files without any are left out; archives inside that cannot be read are in it.

    Raises:
        WorkError: the path is missing, or is a package or an archive that cannot be read.
    """
    if not path.exists():
        raise WorkError("there is no such file", path=path)
    found = {name: file if isinstance(file, Unread) else gpu_code_in_file(file) for name, file in _files(path)}
    return {name: found[name] for name in sorted(found) if found[name]}


def gpu_code(path: Path) -> Mapping[str, tuple[GpuCode, ...]]:
    """The same without the archives that cannot be read."""
    return with_code(contents(path))


def with_code(found: Mapping[str, tuple[GpuCode, ...] | Unread]) -> Mapping[str, tuple[GpuCode, ...]]:
    """The files that have GPU code, without the archives that cannot be read."""
    return {name: codes for name, codes in found.items() if not isinstance(codes, Unread)}


def _files(path: Path) -> Iterator[tuple[str, Path | Unread]]:
    """The files at a path, those in an archive included; each exists until the next one is taken."""
    if path.is_dir():
        for name in _regular_files(path):
            try:
                yield from ((f"{name}/{inner}" if inner else name, found) for inner, found in files_of(path / name))
            except WorkError as error:
                yield name, Unread(error.mistakes[0].message)
    elif path.name.endswith(PACKAGE_SUFFIXES[0]):
        with temporary_folder() as folder:
            unpack(path, folder)
            yield from _files(folder)
    else:
        yield from ((inner or path.name, found) for inner, found in files_of(path))


def _regular_files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        relative = Path(place).relative_to(folder).as_posix()
        for name in names:
            if stat.S_ISREG(os.lstat(f"{place}/{name}").st_mode):
                yield name if relative == "." else f"{relative}/{name}"


def lacking(
    promised: Iterable[Architecture], codes_of_files: Mapping[str, tuple[GpuCode, ...]]
) -> tuple[Architecture, ...]:
    """The required architectures that no file has, in the order of the requirement."""
    present = {code.architecture for codes in codes_of_files.values() for code in codes if code.kind != "LTO"}
    return tuple(architecture for architecture in promised if architecture not in present)


def architecture_names(codes: Iterable[GpuCode]) -> list[str]:
    """Each architecture once, machine code first, as in lists for nvcc; LTO's as `lto_90`."""
    kinds = {(code.kind == "LTO", code.architecture.ptx, code.architecture.number, _name(code)) for code in codes}
    return [name for *_, name in sorted(kinds)]


def _name(code: GpuCode) -> str:
    return str(code.architecture).replace("sm_", "lto_") if code.kind == "LTO" else str(code.architecture)
