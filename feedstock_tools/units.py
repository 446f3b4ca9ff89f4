"""Amounts of memory and time, read as people write them and written as people read them."""

from __future__ import annotations

import re

from feedstock_tools.errors import InputError

__all__ = ["size_of", "size_text", "time_of"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMGT])(i?)B?|B)?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)?")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def size_of(text: str) -> int:
    """The bytes of an amount; a unit without `B` is binary.

    Raises:
        InputError: `text` is not an amount, or zero.

    >>> size_of("64 GiB") == 64 * 2**30, size_of("500MB"), size_of("16G") == 16 * 2**30, size_of("1024")
    (True, 500000000, True, 1024)
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or float(found[1]) <= 0:
        raise InputError(f"'{text}' is not a valid amount of memory", hint="Write it as 64 GiB, 500 MB or 16G.")
    number, unit, binary = found.groups()
    power = " KMGT".index(unit.upper()) if unit else 0
    decimal = unit is not None and not binary and text.strip().upper().endswith("B")
    return int(float(number) * (1000 if decimal else 1024) ** power)


def time_of(text: str) -> float:
    """The seconds of a time.

    Raises:
        InputError: `text` is not a time, or zero.

    >>> time_of("90"), time_of("30 min"), time_of("3 h")
    (90.0, 1800.0, 10800.0)
    """
    found = _TIME.fullmatch(text.strip())
    if not found or float(found[1]) <= 0:
        raise InputError(f"'{text}' is not a valid duration", hint="Write it as 90 s, 30 min or 3 h.")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def size_text(size: int) -> str:
    """A number of bytes.

    >>> size_text(512), size_text(4300), size_text(3 * 2**30)
    ('512 B', '4.2 KiB', '3.00 GiB')
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.2f} GiB"
