"""The two things of an ELF file that making Python relocatable needs: which libraries it loads, and from where."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The dynamic section of an ELF file: `needed` libraries, the run path, and where the run path's text begins."""

    needed: tuple[str, ...]
    run_path: str | None
    run_path_offset: int


def read_dynamic(content: bytes) -> Dynamic | None:
    """Read the dynamic section of a 64-bit little-endian ELF file; None for any other file, or a static one."""
    if content[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        segments = _segments(content)
        entries = _entries(content, segments)
        strings = _file_offset(next(value for tag, value in entries if tag == _DT_STRTAB), segments)
        needed = tuple(_text(content, strings + value) for tag, value in entries if tag == _DT_NEEDED)
        run_path = next((value for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)), None)
        if run_path is None:
            return Dynamic(needed, None, 0)
        return Dynamic(needed, _text(content, strings + run_path), strings + run_path)
    except (struct.error, StopIteration, OverflowError, ValueError):
        return None


def with_run_path(content: bytes, run_path: str) -> bytes | None:
    """The file with another run path, written over the one it has; None where there is no room for it."""
    dynamic = read_dynamic(content)
    if dynamic is None or dynamic.run_path is None or len(dynamic.run_path) < len(run_path):
        return None
    start, length = dynamic.run_path_offset, len(dynamic.run_path)
    return content[:start] + run_path.encode().ljust(length, b"\0") + content[start + length :]


def _segments(content: bytes) -> list[tuple[int, int, int, int]]:
    """Type, offset in the file, address and size in the file of each segment."""
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    segments = []
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", content, table + number * size)
        segments.append((kind, offset, address, length))
    return segments


def _entries(content: bytes, segments: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    _, offset, _, length = next(segment for segment in segments if segment[0] == _PT_DYNAMIC)
    entries = []
    for place in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<qQ", content, place)
        if tag == _DT_NULL:
            break
        entries.append((tag, value))
    return entries


def _file_offset(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    for kind, offset, start, length in segments:
        if kind == _PT_LOAD and start <= address < start + length:
            return offset + address - start
    return address


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode("utf-8", "replace")
