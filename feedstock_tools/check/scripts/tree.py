"""Build scripts as trees of assignments and conditions, and the values of variables at their end.

Nothing is run: conditions on the variant and assignments of plain text are followed. What cannot be
known (the output of a command, a file that may exist) stays unknown, and both branches are possible then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import product

from feedstock_tools.check.architecture_lists import options_in, options_of
from feedstock_tools.conditions.tree import Compare, Condition, Leaf, Reference, Text, names_of, truth

#: A variable with more possible values than this counts as unknown.
_MOST = 16


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value that a variable may have, and the line that set it; None if unknown."""

    text: str | None
    line: int


#: The possible values of each known variable.
Values = Mapping[str, frozenset[Assigned]]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable gets a value."""

    line: int
    name: str
    value: Text


@dataclass(frozen=True, slots=True)
class Choice:
    """Branches with their conditions; the first that holds is taken, and the last one may always hold."""

    branches: tuple[tuple[Condition, tuple[Node, ...]], ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """The script ends."""


Node = Assignment | Choice | Exit


def command_of_nvcc(line: int, text: str, read: Callable[[str], Text]) -> Iterator[Assignment]:
    """A call of nvcc with options on architectures, as if it set a variable `nvcc@<line>` to these options.

    Args:
        read: how the language of the script reads a text.
    """
    if "nvcc" in text.lower() and any(options_in(text)):
        yield Assignment(line, f"nvcc@{line}", read(options_of(text)))


def run(nodes: Iterable[Node], values: Values) -> Values | None:
    """The possible values of variables after a part of a script; None if the script always ends before."""
    current: dict[str, frozenset[Assigned]] = dict(values)
    for node in nodes:
        if isinstance(node, Exit):
            return None
        if isinstance(node, Assignment):
            current[node.name] = _assigned(node, current)
            continue
        after = _after_choice(node, current)
        if after is None:
            return None
        current = dict(after)
    return current


def _assigned(node: Assignment, values: Values) -> frozenset[Assigned]:
    names = frozenset(part.name for part in node.value.parts or () if isinstance(part, Reference))
    singles = _singles(names, values)
    possible = frozenset(Assigned(_value_of(node.value, single), node.line) for single in singles)
    return possible if len(possible) <= _MOST else frozenset({Assigned(None, node.line)})


def _after_choice(choice: Choice, values: Values) -> Values | None:
    """The possible values over all branches that may be taken."""
    ends: list[Values] = []
    for condition, body in choice.branches:
        answers = {truth(condition, partial(_holds, single)) for single in _singles(names_of(condition), values)}
        if answers == {False}:
            continue
        end = run(body, values)
        if end is not None:
            ends.append(end)
        if answers == {True}:
            break
    else:
        ends.append(values)
    if not ends:
        return None
    names = frozenset().union(*(end.keys() for end in ends))
    unset = frozenset({Assigned(None, 0)})  # its value before the script is unknown
    return {name: frozenset().union(*(end.get(name, unset) for end in ends)) for name in names}


def _singles(names: frozenset[str], values: Values) -> list[dict[str, str | None]]:
    """Every combination of possible values of the named variables."""
    ordered = sorted(names)
    options = [sorted({value.text for value in values.get(name, ())} or {None}, key=str) for name in ordered]
    combined = list(product(*options)) if len(options) < 8 else [(None,) * len(ordered)]
    return [dict(zip(ordered, texts, strict=True)) for texts in combined[: _MOST * _MOST]]


def _holds(values: Mapping[str, str | None], leaf: Leaf) -> bool | None:
    """Whether a comparison of texts holds for single values of their variables; None if it is unknown."""
    match leaf:
        case Compare(Text() as left, sign, Text() as right):
            first, other = _value_of(left, values), _value_of(right, values)
            if first is not None and other is not None:
                return fnmatchcase(first, other) if sign == "like" else first == other
    return None


def _value_of(text: Text, values: Mapping[str, str | None]) -> str | None:
    """The value of a text for single values of its variables; None if it is unknown."""
    if text.parts is None:
        return None
    parts = [part if isinstance(part, str) else _value_of_reference(part, values.get(part.name)) for part in text.parts]
    known = [part for part in parts if part is not None]
    return "".join(known) if len(known) == len(parts) else None


def _value_of_reference(reference: Reference, value: str | None) -> str | None:
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
    return None
