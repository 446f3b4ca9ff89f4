"""Texts with variables and conditions on them, as build scripts write them, and their values.

An answer can be unknown (None): of the output of a command, of a file that may exist, of a variable that has no
known value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

#: What a script does to the value of a variable: `if set` gives it unless it is empty, `first part` what precedes the
#: first dot; `unknown` is anything else.
Edit = Literal["none", "if set", "first part", "without first dot", "without dots", "unknown"]
#: The value of each variable; None if it is unknown.
Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable in a text: its value after an edit, or the first `length` characters of it."""

    name: str
    edit: Edit = "none"
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A text with variables in it; without parts (None) its value is unknown."""

    parts: tuple[str | Reference, ...] | None


@dataclass(frozen=True, slots=True)
class Always:
    """Holds always."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """May hold or not."""


@dataclass(frozen=True, slots=True)
class Same:
    """Two texts are equal."""

    left: Text
    right: Text


@dataclass(frozen=True, slots=True)
class Matches:
    """A text matches one of some patterns of a shell."""

    subject: Text
    patterns: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A condition does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class All:
    """Every one of some conditions holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of some conditions holds."""

    conditions: tuple[Condition, ...]


Condition = Always | Unclear | Same | Matches | Not | All | AnyOf


def names_in(expression: Text | Condition) -> frozenset[str]:
    """The variables that a text or condition names."""
    if isinstance(expression, Text):
        return frozenset(part.name for part in expression.parts or () if isinstance(part, Reference))
    return frozenset().union(*map(names_in, _parts_of(expression)))


def _parts_of(condition: Condition) -> tuple[Text | Condition, ...]:
    match condition:
        case Same(left, right):
            return (left, right)
        case Matches(subject, patterns):
            return (subject, *patterns)
        case Not(negated):
            return (negated,)
        case All(conditions) | AnyOf(conditions):
            return conditions
        case _:
            return ()


def value_of(text: Text, values: Values) -> str | None:
    """The value of a text for single values of its variables; None if it is unknown."""
    if text.parts is None:
        return None
    parts: list[str] = []
    for part in text.parts:
        value = part if isinstance(part, str) else _value_of_reference(part, values)
        if value is None:
            return None
        parts.append(value)
    return "".join(parts)


def _value_of_reference(reference: Reference, values: Values) -> str | None:
    value = values.get(reference.name)
    if value is None:
        return None
    match reference.edit:
        case "none":
            return value[: reference.length]
        case "if set":
            return value or None
        case "first part":
            return value.partition(".")[0]
        case "without first dot":
            return value.replace(".", "", 1)
        case "without dots":
            return value.replace(".", "")
        case _:
            return None


def holds(condition: Condition, values: Values) -> bool | None:
    """Whether a condition holds for single values of its variables; None if it is unknown."""
    match condition:
        case Always():
            return True
        case Same(left, right):
            first, other = value_of(left, values), value_of(right, values)
            return None if first is None or other is None else first == other
        case Matches(subject, patterns):
            return _any_of(_is_like(value_of(subject, values), value_of(pattern, values)) for pattern in patterns)
        case Not(negated):
            answer = holds(negated, values)
            return None if answer is None else not answer
        case All(conditions):
            return _all(holds(part, values) for part in conditions)
        case AnyOf(conditions):
            return _any_of(holds(part, values) for part in conditions)
        case _:
            return None


def _is_like(subject: str | None, pattern: str | None) -> bool | None:
    return None if subject is None or pattern is None else fnmatchcase(subject, pattern)


def _all(answers: Iterable[bool | None]) -> bool | None:
    different = set(answers)
    return False if False in different else None if None in different else True


def _any_of(answers: Iterable[bool | None]) -> bool | None:
    different = set(answers)
    return True if True in different else None if None in different else False
