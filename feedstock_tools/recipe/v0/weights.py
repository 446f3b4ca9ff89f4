"""How large the values of templates are, and will become: what the sandbox of a `meta.yaml` counts and refuses.

A size is computed before the work, from what goes in: `'%s' % x`, `a.replace(b, c)` and `[x] * n` can make gigabytes
of a few characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from types import MappingProxyType
from typing import Any

import jinja2

from feedstock_tools.bounds.limits import most

_LARGEST = 1_000_000
#: What an item of a list counts, in characters: work with it takes as long.
_ITEM = 10
_LISTS = (list, tuple, set, frozenset)
_NUMBERS = (int, float)
#: Width and precision of a field of `%`, behind its key.
_PERCENT = re.compile(r"%(?:\((?:[^()]|\([^()]*\))*\))?[#0 +-]*(\*|\d*)(?:\.(\*|\d*))?")
_WIDE = re.compile(r"\d{4,}|[*{]")
#: The attributes of values that recipes have a use for; of other types what Jinja's sandbox lets through.
ATTRIBUTES: Mapping[type, frozenset[str]] = MappingProxyType(
    {
        str: frozenset(
            (
                *("capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format"),
                *("format_map", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier"),
                *("islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip"),
                *("partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition"),
                *("rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper"),
                "zfill",
            )
        ),
        bytes: frozenset({"decode"}),
        int: frozenset({"bit_length", "real", "numerator", "denominator"}),
    }
)


class TooMuchError(jinja2.TemplateRuntimeError):
    """A template takes more than it may."""


def hold(size: float) -> None:
    """Refuse a value of such a size.

    Raises:
        TooMuchError: it is too large.
    """
    if size > _LARGEST and size > most(_LARGEST):
        raise TooMuchError("a value grows beyond the limit")


def weight(value: Any) -> int:
    """The characters and items of a value, with all that is in it; what it holds twice counts twice.

    Raises:
        TooMuchError: it is too large.
    """
    if isinstance(value, str):
        return len(value)
    total, pending = 0, [value]
    limit = most(_LARGEST)
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            total += len(part)
        elif isinstance(part, _LISTS):
            total += _ITEM * len(part)
            pending += part
        elif not isinstance(part, _NUMBERS) and isinstance(part, Mapping):  # a slow question
            total += _ITEM * len(part)
            pending += [*part.keys(), *part.values()]
        if total > limit:
            raise TooMuchError("its values grow beyond the limit")
    return total


def product_size(left: Any, right: Any) -> int:
    """The size of `left * right`; for numbers their bits."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() + right.bit_length()
    sequence, count = (left, right) if isinstance(right, int) else (right, left)
    if not isinstance(sequence, str | bytes | list | tuple) or not isinstance(count, int):
        return 0
    return max(len(sequence), 0 if isinstance(sequence, bytes) else weight(sequence)) * max(count, 0)


def grown(owner: str, name: str, args: Sequence[Any]) -> int:
    """An upper bound for what a method of a string makes."""
    if name == "replace" and len(args) >= 2:
        old, new = str(args[0]), str(args[1])
        return len(owner) + (owner.count(old) if old else len(owner) + 1) * len(new)
    if name == "join" and args and isinstance(args[0], list | tuple | str):
        return len(args[0]) * len(owner) + weight(args[0])
    if name in ("ljust", "rjust", "center", "zfill", "expandtabs"):
        width = max((arg for arg in args if isinstance(arg, int)), default=0)
        return width * (len(owner) if name == "expandtabs" else 1)
    return 0


def check_format(template: str, values: Iterable[Any]) -> None:
    """Refuse to format where fields are very wide, or values that are filled in make too much.

    Raises:
        TooMuchError: a field is wider than any recipe needs, or the result too large.
    """
    specs = [spec or "" for _, _, spec, _ in Formatter().parse(template)] if "{" in template else []
    specs += [part for match in _PERCENT.findall(template) for part in match]
    if any(_WIDE.search(spec) for spec in specs):
        raise TooMuchError("a format has a wider field than any recipe needs")
    fields = template.count("%") + template.count("{")
    hold(len(template) + fields * max((weight(value) for value in values), default=0))


def _replace_filter(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text = value if isinstance(value, str) else str(value)
    hold(grown(text, "replace", (old, new)))
    return text.replace(str(old), str(new), -1 if count is None else count)


def _join_filter(value: Iterable[Any], d: Any = "", attribute: str | None = None) -> str:
    items = [str(getattr(item, attribute) if attribute and not attribute.startswith("_") else item) for item in value]
    hold(grown(str(d), "join", (items,)))
    return str(d).join(items)


def _format_filter(value: Any, *args: Any, **kwargs: Any) -> str:
    check_format(str(value), (*args, *kwargs.values()))
    return str(value) % (kwargs or args)


def _sum_filter(iterable: Iterable[Any], attribute: str | None = None, start: Any = 0) -> Any:
    """The sum of numbers; to add up lists takes time that grows with the square of their number."""
    if attribute is not None:
        iterable = [item[attribute] if isinstance(item, Mapping) else 0 for item in iterable]
    numbers = [start, *iterable]
    if not all(isinstance(number, int | float) for number in numbers):
        raise jinja2.TemplateRuntimeError("only numbers are added up in recipes")
    return sum(numbers)


#: Filters of Jinja in a form that measures first.
BOUNDED_FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"replace": _replace_filter, "join": _join_filter, "format": _format_filter, "sum": _sum_filter}
)
