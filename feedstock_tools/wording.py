"""The form of numbers, sizes, times and tables in all output, and amounts as people write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from feedstock_tools.errors import InputError

#: Characters that a terminal acts on instead of showing them: control characters except tab and line feed, marks that
#: turn the direction of a line around or end it elsewhere, characters without width or ink, with which two names would
#: look the same (selectors of a variation count after a sign), and lone surrogates, which represent bytes that
#: are not UTF-8.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]|(?<![\u2000-\U0010ffff])[\ufe0e\ufe0f]"
)

#: Lines that a runner of workflows obeys: GitHub's begin with `::`, older ones and those of Azure are anywhere.
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#(?:vso)?\[)", re.MULTILINE | re.IGNORECASE)
#: What Markdown acts on: punctuation, some only where a text begins, and after these characters mentions, references
#: and addresses.
_MARKS = re.compile(
    r"([\\`*\[\]<>|~&$!]|(?<!\w)_|_(?!\w)|^[#=+-])|(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)"
    r"|(?<=\bGH)(?=-\d)|^(?=\s|\d+[.)](?:\s|$))",
    re.IGNORECASE,
)
_BAR = re.compile(r"(\\*)\|")
_BREAKS = re.compile(r"[\n\t]")

_NONE: frozenset[int] = frozenset()
#: The characters below which no column of a table is cut.
_NARROW = 12
#: The blanks between columns, and what no line is broken in: quoted words and all others.
_GAP = re.compile(r" {2,}")
_UNBROKEN = re.compile(r"(?:(?<![\w'`])(?:'[^'\n]*'|`[^`\n]*`)(?!\w)|\S)+")
_Hint = TypeVar("_Hint", str, "str | None")
#: Colours and weights of letters.
_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,32}m)")
_PLAIN = "\x1b[0m"
_PLAINS = ("\x1b[0m", "\x1b[m")


def without_unseen(name: str) -> str:
    """A name without the characters that HFS+ ignores, and others that nobody sees.

    >>> without_unseen("info\\u200b")
    'info'
    """
    return "".join(each for each in name if unicodedata.category(each) != "Cf")


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some_of(names: Sequence[str], most: int = 1) -> str:
    """The first of some names, and how many more there are.

    >>> some_of(["a", "b", "c"]), some_of(["a", "b"], 3)
    ('a and 2 more', 'a, b')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def listed(words: Iterable[str]) -> str:
    """`a, b and c`, `a and b`, `a`; of none `nothing`."""
    *first, last = [*words] or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


def shown(text: str) -> str:
    """A text that a terminal shows unchanged, and on which neither it nor the log of a workflow acts: names may come
    from untrusted files.

    >>> print(shown("linux_64_\\x1b[2J\\x07"))
    linux_64_\\x1b[2J\\x07
    >>> print(shown("::error::no"))
    \\x3a:error::no
    """
    text = _UNSHOWN.sub(_escaped, text)
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda match: f"{match[1]}\\x3a" if match[1] is not None else "\\x23", text)


def named(name: str) -> str:
    """A stranger's name in a line of a terminal or a log, which it does not leave, with all of its characters seen.

    >>> print(named("file\\nNothing to mend."))
    file\\nNothing to mend.
    """
    return _BREAKS.sub(_escaped, shown(name))


def code(name: str) -> str:
    """A stranger's name in Markdown, as code: no mark in it, mention or address counts.

    >>> code("a"), code("`@b")
    ('`a`', '`` `@b ``')
    """
    text = named(name) or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"{fence}{text}{fence}"


def markup(text: str) -> str:
    """A text with words of strangers in a line of Markdown, in which no mark, mention or address counts.

    >>> print(markup("<b> of @me"))
    \\<b\\> of @\u200bme
    """
    return _MARKS.sub(lambda match: f"\\{match[1]}" if match[1] else "\u200b", named(text))


def html_code(name: str) -> str:
    """A stranger's name in HTML within Markdown, as code: no mention counts in it."""
    return f"<code>{named(name).replace('&', '&amp;').replace('<', '&lt;')}</code>"


def fenced(lines: Iterable[str], language: str = "") -> str:
    """Lines of strangers as a block of code in Markdown, which none of them ends.

    >>> print(fenced(["use `a`"]))
    ```
    use `a`
    ```
    """
    text = "\n".join(map(shown, lines))
    fence = "`" * (1 + max(2, *map(len, re.findall("`+", text)), 0))
    return f"{fence}{language}\n{text}\n{fence}"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


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

    >>> duration(0.42), duration(42), duration(59.7), duration(250), duration(7500)
    ('0.42 s', '42 s', '1 min 00 s', '4 min 10 s', '2 h 05 min')
    """
    if seconds is None:
        return ""
    if seconds < 59.5:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"
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


def nearest(word: str, words: Iterable[str], otherwise: _Hint, *, cutoff: float = 0.5) -> _Hint:
    """The hint for an unknown word: the known one that resembles it most, if any does."""
    from difflib import get_close_matches  # an error alone needs it

    near = get_close_matches(word, list(words), n=1, cutoff=cutoff)
    return f"Did you mean '{near[0]}'?" if near else otherwise


def values_of(value: object, *names: str) -> dict[str, Any]:
    """Attributes of a value by their names, as for JSON."""
    return {name: getattr(value, name) for name in names}


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[int] = _NONE) -> list[str]:
    """Lines of a table of Markdown; what its cells say must be `code` or `markup`.

    Args:
        right: the numbers of the columns that are aligned to the right.
    """
    rule = ["--:" if at in right else "---" for at in range(len(head))]
    lines = [[_BAR.sub(_in_cell, cell) for cell in row] for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in lines)]


def _in_cell(bar: re.Match[str]) -> str:
    """A bar with an odd number of backslashes, which ends no cell."""
    return f"{bar[1]}|" if len(bar[1]) % 2 else f"{bar[1]}\\|"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = _NONE,
    width: int | None = None,
    spare: Sequence[str] = (),
    cut: str = "",
) -> str:
    """Lines of aligned columns below a head and a rule.

    Args:
        right: the numbers of the columns that are aligned to the right.
        width: the characters of a line; None: as many as it takes. What is too wide loses the `spare` columns, one
            after the other until it fits, by their names; then the cells of the column `cut` are cut in the middle,
            and then the widest.
    """
    whole = [list(map(named, row)) for row in (head, *rows)]
    kept = list(range(len(head)))
    for name in spare:
        if width is None or _width_of([[row[at] for at in kept] for row in whole]) <= width:
            break
        kept = [at for at in kept if head[at] != name]
    whole = [[row[at] for at in kept] for row in whole]
    if width is not None:
        whole = _narrowed(whole, width, whole[0].index(cut) if cut else None)
    lines = aligned(whole, right=frozenset(new for new, at in enumerate(kept) if at in right))
    rule = "  ".join("-" * most for most in _widths(whole))
    return "\n".join([lines[0], rule, *lines[1:]])


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _width_of(rows: Sequence[Sequence[str]]) -> int:
    widths = _widths(rows)
    return sum(widths) + 2 * (len(widths) - 1)


def _narrowed(rows: Sequence[Sequence[str]], width: int, first: int | None) -> list[list[str]]:
    """Rows whose column `first`, then whose widest columns are cut until a line of all fits, none below `_NARROW`."""
    limits = _widths(rows)
    excess = _width_of(rows) - width
    if first is not None and excess > 0:
        taken = min(excess, max(0, limits[first] - _NARROW))
        limits[first], excess = limits[first] - taken, excess - taken
    while excess > 0 and max(limits) > _NARROW:
        limits[limits.index(max(limits))] -= 1
        excess -= 1
    return [[middle_cut(text, limit) for text, limit in zip(row, limits, strict=True)] for row in rows]


def middle_cut(text: str, most: int) -> str:
    """A text of up to `most` characters, its begin and its end.

    >>> middle_cut("linux_64_blas_implmkl", 11), middle_cut("linux_64", 11)
    ('linux…plmkl', 'linux_64')
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def fitted(text: str, width: int, *, cut: bool) -> str:
    """A text whose lines have up to `width` characters, broken at blanks, but not within quoted words that fit.

    The rest of a line stands below its last column, or two characters further in.

    Args:
        cut: words longer than a line are cut in the middle, to what most of a line has left, but for absolute
            paths and addresses, which are for copying; else they stay whole.

    >>> print(fitted("change  a-name of 'two words'", 20, cut=True))
    change  a-name of
            'two words'
    >>> print(fitted("linux_64_blas_implmkl", 14, cut=True))
    linux_6…mplmkl
    """
    return "\n".join(
        line if len(line) <= width or len(uncoloured(line)) <= width else "\n".join(_broken(line, width, cut))
        for line in text.split("\n")
    )


_COPIED = re.compile(r"/|[a-z0-9]+://")


def _broken(line: str, width: int, cut: bool) -> Iterator[str]:
    start = len(line) - len(line.lstrip(" "))
    columns = [match.end() for match in _GAP.finditer(line, start) if match.end() <= 2 * width // 3]
    rest = " " * (columns[-1] if columns else start + 2)
    room = max(width - len(rest), _NARROW)
    row, at = line[:start], start
    for match in _UNBROKEN.finditer(line):
        parts = [match[0]] if len(uncoloured(match[0])) <= room else match[0].split()
        for part in parts:
            gap = line[at : match.start()] if part is parts[0] else " "
            left = width - len(uncoloured(row + gap))
            most = left if len(part) > room and 3 * left > 2 * width else room
            word = middle_cut(part, most) if cut and "\x1b" not in part and not _COPIED.match(part) else part
            if not row.strip() or len(uncoloured(row + gap + word)) <= width:
                row += gap + word
            else:
                yield row.rstrip()
                row = rest + word
        at = match.end()
    yield row


def aligned(rows: Sequence[Sequence[str]], *, right: frozenset[int] = _NONE) -> list[str]:
    """A line for each row, its cells two blanks apart and as wide as the widest of their column.

    Raises:
        ValueError: the rows have different numbers of cells.
    """
    lines = [list(map(named, row)) for row in rows]
    widths = _widths(lines)
    return ["  ".join(_cells(row, widths, right)).rstrip() for row in lines]


def _cells(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    pairs = enumerate(zip(row, widths, strict=True))
    return [text.rjust(width) if at in right else text.ljust(width) for at, (text, width) in pairs]


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
