"""Amounts of memory and time, read as people write them and written as people read them."""

from __future__ import annotations

import re

from feedstock_tools.errors import InputError

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) ?(?:([KMGT])(i?)B?|B)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) ?(s|min|h)?", re.ASCII)
#: The longest time that can be waited for, in seconds: about three years.
_LONGEST = 1e8
#: The most characters of an invalid text in a message.
_SHOWN = 40
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def size_of(text: str) -> int:
    """The bytes of an amount; a unit without `B` is binary.

    Raises:
        InputError: `text` is not an amount, or zero.

    >>> size_of("64 GiB") == 64 * 2**30, size_of("500MB"), size_of("16G") == 16 * 2**30, size_of("1024")
    (True, 500000000, True, 1024)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or float(match[1]) <= 0:
        raise InputError(f"'{_short(text)}' is not a valid amount of memory", hint="Write it as 64 GiB, 500 MB or 16G.")
    number, unit, binary = match.groups()
    power = " KMGT".index(unit.upper()) if unit else 0
    decimal = unit is not None and not binary and text.strip().upper().endswith("B")
    return int(float(number) * (1000 if decimal else 1024) ** power)


def time_of(text: str) -> float:
    """The seconds of a time.

    Raises:
        InputError: `text` is not a time, zero, or longer than 27000 h.

    >>> time_of("90"), time_of("30 min"), time_of("3 h")
    (90.0, 1800.0, 10800.0)
    """
    match = _TIME.fullmatch(text.strip())
    if not match or float(match[1]) <= 0:
        raise InputError(f"'{_short(text)}' is not a valid duration", hint="Write it as 90 s, 30 min or 3 h.")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds > _LONGEST:
        raise InputError(f"'{text}' is too long a time", hint="The longest is 27000 h.")
    return seconds


def time_limit_of(text: str) -> float | None:
    """The seconds of a time limit; None for `0`, no limit.

    Raises:
        InputError: as `time_of`.

    >>> time_limit_of("48 h"), time_limit_of("0")
    (172800.0, None)
    """
    return None if text.strip() == "0" else time_of(text)


def _short(text: str) -> str:
    """A text for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
