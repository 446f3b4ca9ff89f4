"""Zstandard frames (RFC 8878) of stored blocks: no compression library is needed, whose version could change bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: Magic number, and the header of a frame without content size whose window is one block.
_HEADER = bytes((0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38))
_BLOCK = 128 * 1024


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
    yield _HEADER
    pieces: list[memoryview] = []
    room = _BLOCK
    for part in parts:
        rest = memoryview(part)
        while rest:
            if not room:
                yield _block(pieces, _BLOCK, last=False)
                pieces, room = [], _BLOCK
            pieces.append(rest[:room])
            rest = rest[room:]
            room -= len(pieces[-1])
    yield _block(pieces, _BLOCK - room, last=True)


def _block(pieces: Iterable[memoryview], size: int, *, last: bool) -> bytes:
    return b"".join(((size << 3 | last).to_bytes(3, "little"), *pieces))
