"""The texts of a `recipe.yaml` where they stand: below which keys, in which output, under which conditions.

Walking YAML's nodes is several times faster than making a `Document` of parts, which a rerender need not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from feedstock_tools.yaml_reading.nodes import Node, items, members, pairs


@dataclass(frozen=True, slots=True)
class Site:
    """A text in a recipe.

    Attributes:
        keys: the keys that it stands below, without `if`, `then` and `else`.
        lines: its first and its last line, counted from 1.
        output: the name of the output or stage that it belongs to, with templates.
        conditions: the conditions of the branches that it stands in, outer ones first, and what each must be.
        kind: `condition` for the value of an `if`, `key` for a key with a template.
    """

    text: str
    keys: tuple[str, ...]
    lines: tuple[int, int]
    output: str | None
    conditions: tuple[tuple[str, bool], ...]
    kind: Literal["value", "condition", "key"] = "value"


def sites_of(node: Node | None) -> Iterator[Site]:
    """All texts of a recipe, in order; of the keys those with templates."""
    yield from _sites(node, (), None, ())


def _sites(
    node: Node | None, keys: tuple[str, ...], output: str | None, conditions: tuple[tuple[str, bool], ...]
) -> Iterator[Site]:
    condition = members(node).get("if")
    for key, value in pairs(node):
        name = str(key.value)
        if condition is None or condition.id != "scalar":
            if "{" in name:
                yield Site(name, keys, _lines(key), output, conditions, "key")
            yield from _sites(value, (*keys, name), output, conditions)
        elif name == "if":
            yield Site(value.value, keys, _lines(value), output, conditions, "condition")
        else:
            yield from _sites(value, keys, output, (*conditions, (condition.value, name == "then")))
    for item in items(node):
        yield from _sites(item, keys, _name(item) if keys == ("outputs",) else output, conditions)
    if node is not None and node.id == "scalar":
        yield Site(node.value, keys, _lines(node), output, conditions)


def _lines(node: Node) -> tuple[int, int]:
    first = node.start_mark.line
    return first + 1, max(first, node.end_mark.line - (node.end_mark.column == 0)) + 1


def _name(output: Node) -> str | None:
    keys = members(output)
    name = members(keys.get("package") or keys.get("staging")).get("name")
    return None if name is None else str(name.value)


@dataclass(frozen=True, slots=True)
class ContextValue:
    """A variable of a recipe as it is written: its text, and whether that has no quotes."""

    text: str
    plain: bool


def context_of(node: Node | None) -> Mapping[str, ContextValue | None]:
    """The variables that a recipe sets in its `context`; None for one that is a list."""
    return {
        name: ContextValue(value.value, not value.style) if value.id == "scalar" else None
        for name, value in members(members(node).get("context")).items()
    }
