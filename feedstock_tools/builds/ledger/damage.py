"""Checking the types of a ledger's values: SQLite accepts any value in any column."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["checked", "refuse_leading_out"]

_Record = TypeVar("_Record")
_Check: TypeAlias = "Callable[[Any], bool]"

#: Of a text: the longest reason, a solver's, has some kilobytes. Of a number: no size or time is greater.
_LONGEST = 1 << 20
_GREATEST = 1 << 63


def checked(record: _Record) -> _Record:
    """The record itself, if each of its fields is of its type.

    Raises:
        ValueError: a field has the wrong type, is NaN or beyond all sizes, or is a string with NUL bytes, which no path
            may have.
    """
    kind: Any = type(record)
    for name, fits in _checks(kind):
        if not fits(getattr(record, name)):
            raise ValueError(f"it has an invalid '{name}'")
    return record


def refuse_leading_out(*paths: str) -> None:
    """Refuse paths that are not below the ledger's folder: packages are read, published and removed by them.

    Raises:
        ValueError: a path is absolute, or has `..` in it.
    """
    for path in paths:
        if path[:1] in ("/", "\\") or path[1:2] == ":" or ".." in path.replace("\\", "/").split("/"):
            raise ValueError(f"the path {path[:200]!r} leads out of its folder")


@cache
def _checks(kind: Any) -> tuple[tuple[str, _Check], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _check(hints[field.name])) for field in fields(kind))


def _check(hint: Any) -> _Check:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, of = get_origin(hint), [_check(each) for each in get_args(hint) if each is not ...]
    if origin in (Union, UnionType):
        return lambda value: any(fits(value) for fits in of)
    if origin is tuple:
        return lambda value: isinstance(value, tuple) and all(map(of[0], value))
    if origin is Mapping:
        return lambda value: isinstance(value, dict) and all(map(of[0], value)) and all(map(of[1], value.values()))
    kind = NoneType if hint is None else hint
    return lambda value: isinstance(value, kind)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _LONGEST and "\0" not in value


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_GREATEST <= value < _GREATEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


_PLAIN: Mapping[Any, _Check] = {
    str: _is_text,
    int: _is_whole,
    float: _is_number,
    Any: lambda _value: True,
}
