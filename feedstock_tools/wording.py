"""The form of numbers, times and tables in all output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

#: Characters that a terminal acts on instead of showing them: control characters except tab and line feed, marks that
#: turn the direction of a line around, and lone surrogates, which represent bytes that are not UTF-8.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_NONE: frozenset[int] = frozenset()
#: Colours and weights of letters.
_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,32}m)")
_PLAIN = "\x1b[0m"
_PLAINS = ("\x1b[0m", "\x1b[m")


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shown(text: str) -> str:
    """A text that a terminal shows unchanged and never acts on: names may come from untrusted files.

    >>> print(shown("linux_64_\\x1b[2J\\x07"))
    linux_64_\\x1b[2J\\x07
    """
    return _UNSHOWN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def shown_log(text: str) -> str:
    """A text that a build printed, as a terminal may have it: with its colours, and nothing else that it acts on.

    Colours end with the text: a build cannot hide what follows it.

    A carriage return, with which programs write over a line, begins a line of its own.

    >>> print(shown_log("10 %\\r\\x1b[2J20 %"))
    10 %
    \\x1b[2J20 %
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    parts = _COLOUR.split(lines)
    text = "".join(part if at % 2 else shown(part) for at, part in enumerate(parts))
    if len(parts) == 1 or parts[-2] in _PLAINS:
        return text
    return f"{text[:-1]}{_PLAIN}\n" if text.endswith("\n") else f"{text}{_PLAIN}"


def uncoloured(text: str) -> str:
    """A text without colours and weights of letters; what else it asks of a terminal stays.

    >>> uncoloured("\\x1b[1;31merror\\x1b[0m")
    'error'
    """
    return _COLOUR.sub("", text)


def duration(seconds: float | None) -> str:
    """A time span; empty for None, an unknown span.

    >>> duration(0.42), duration(42), duration(250), duration(7500)
    ('0.42 s', '42 s', '4 min 10 s', '2 h 05 min')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def moment(text: str) -> str:
    """A time in ISO format for people, to the minute; an invalid one is returned unchanged.

    >>> moment("2026-03-04T09:05:40.123+00:00")
    '2026-03-04 09:05'
    """
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return text


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = _NONE) -> str:
    """Lines of aligned columns below a head and a rule.

    Args:
        right: the numbers of the columns that are aligned to the right.
    """
    lines = aligned([head, *rows], right=right)
    rule = "  ".join("-" * max(len(row[at]) for row in (head, *rows)) for at in range(len(head)))
    return "\n".join([lines[0], rule, *lines[1:]])


def aligned(rows: Sequence[Sequence[str]], *, right: frozenset[int] = _NONE) -> list[str]:
    """A line for each row, its cells two blanks apart and as wide as the widest of their column.

    Raises:
        ValueError: the rows have different numbers of cells.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_cells(row, widths, right)).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    pairs = enumerate(zip(row, widths, strict=True))
    return [text.rjust(width) if at in right else text.ljust(width) for at, (text, width) in pairs]
