"""Zstandard frames (RFC 8878) of stored blocks: no compression library is needed, whose version could change bytes."""

from __future__ import annotations

__all__ = ["stored_frame"]

#: Magic number, and the header of a frame without content size whose window is one block.
_HEADER = bytes((0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38))
_BLOCK = 128 * 1024


def stored_frame(content: bytes | memoryview) -> bytes:
    """`content` as a Zstandard frame of stored blocks.

    >>> stored_frame(b"abc").hex(" ")
    '28 b5 2f fd 00 38 19 00 00 61 62 63'
    """
    blocks = [content[start : start + _BLOCK] for start in range(0, len(content), _BLOCK)] or [b""]
    parts: list[bytes | memoryview] = [_HEADER]
    for number, block in enumerate(blocks, 1):
        last = number == len(blocks)
        parts += [(len(block) << 3 | last).to_bytes(3, "little"), block]
    return b"".join(parts)
