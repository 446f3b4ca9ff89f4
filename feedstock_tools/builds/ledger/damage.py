"""Checking the types of a ledger's values: SQLite accepts any value in any column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["checked"]

_Record = TypeVar("_Record")


def checked(record: _Record) -> _Record:
    """The record itself, if each of its fields is of its type.

    Raises:
        ValueError: a field has the wrong type, is NaN, or is a string with NUL bytes, which no path may have.
    """
    kind: Any = type(record)
    for name, hint in _types(kind):
        if not _fits(getattr(record, name), hint):
            raise ValueError(f"it has an invalid '{name}'")
    return record


@cache
def _types(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))


def _fits(value: Any, hint: Any) -> bool:
    if hint is str:
        return isinstance(value, str) and "\0" not in value
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value)
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in of)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, of[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(key, of[0]) and _fits(item, of[1]) for key, item in value.items())
    return hint is Any or isinstance(value, NoneType if hint is None else hint)
