"""Versions in expressions of a `recipe.yaml`: the engine's `match` and `version_to_buildstring`."""

from __future__ import annotations

import re
from collections.abc import Hashable

from feedstock_tools.recipe.v1.certain_values import UndecidedError

_VERSION = re.compile(r"(\d{1,9}(?:\.\d{1,9})*)(?:\.\*)?(?: \S+)?")
_LIMIT = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9})*)|(\d{1,9}(?:\.\d{1,9})*)\.\*")
_SHORT = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.\*)?(?: \S+)?")


def matches(version: Hashable, spec: Hashable) -> bool:
    """The engine's `match` for versions of numbers; `3.12.* *_cpython` counts as 3.12."""
    if not isinstance(version, str) or not isinstance(spec, str):
        raise UndecidedError
    match = _VERSION.fullmatch(version)
    if match is None:
        raise UndecidedError
    numbers = _numbers(match[1])
    return any(all(_is_within(numbers, limit.strip()) for limit in limits.split(",")) for limits in spec.split("|"))


def _is_within(version: tuple[int, ...], limit: str) -> bool:
    match = _LIMIT.fullmatch(limit)
    if match is None:
        raise UndecidedError
    if match[3]:
        prefix = tuple(int(number) for number in match[3].split("."))
        return (version + (0,) * len(prefix))[: len(prefix)] == prefix
    other = _numbers(match[2])
    return {
        ">=": version >= other,
        "<=": version <= other,
        "==": version == other,
        "!=": version != other,
        "<": version < other,
        ">": version > other,
    }[match[1]]


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version without zeros at its end, so that 3.0 equals 3."""
    numbers = [int(number) for number in version.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def short_version(version: str) -> str:
    """The engine's `version_to_buildstring`: 3.12 as `312`."""
    match = _SHORT.fullmatch(version)
    if match is None:
        raise UndecidedError
    return f"{match[1]}{match[2]}"
