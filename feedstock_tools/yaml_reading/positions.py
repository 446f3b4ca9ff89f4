"""YAML as plain values that remember where they stood: every scalar a text, every mapping and list with its places.

PyYAML's composer gives nodes with line and column, faster than a parser in pure Python. Nothing is constructed but
texts, lists and mappings, whatever tags a file may name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError, Mistake

__all__ = ["Document", "Place", "parse_document"]

Location = tuple[str | int, ...]

#: A spec has some hundred lines; these bounds are far above what a person writes.
_LARGEST_TREE = 20_000
_DEEPEST = 40
_LONGEST_TEXT = 10_000
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_NOTHING = frozenset({"", "~", "null"})
_QUOTING = frozenset("'\"|>")


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and where each stands: of a key (`keys`) and of its value (`values`)."""

    path: Path | None
    content: Any
    values: dict[Location, Place] = field(default_factory=dict)
    keys: dict[Location, Place] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        """Where `location` stands, or the innermost part around it that the file has."""
        first, second = (self.keys, self.values) if of_key else (self.values, self.keys)
        for end in range(len(location), -1, -1):
            found = first.get(location[:end]) or second.get(location[:end])
            if found is not None:
                return found
        return Place(1, 1)


def parse_document(text: str, path: Path | None = None) -> Document:
    """Read a YAML text.

    Keys that stand twice in a mapping are in `mistakes` and the first one counts, so that the rest can be checked too.

    Raises:
        InputError: not YAML, empty, nested too deep, too large with aliases followed, or an alias that holds itself.
    """
    import yaml

    base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_depth(yaml.parse(text, Loader=base), path)
        node = yaml.compose(text, Loader=base)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        raise InputError(
            f"is not YAML: {error.problem or error.context}", path=path, line=line, column=column
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"is not YAML: {error}", path=path) from error
    if node is None:
        raise InputError("is empty", path=path)
    reader = _Reader(path)
    content = reader.value(node, (), ())
    return Document(path, content, reader.values, reader.keys, tuple(reader.mistakes))


def _check_depth(events: Iterator[Any], path: Path | None) -> None:
    """Before anything recurses: how deep the file goes, in one pass."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
        if depth > _DEEPEST:
            raise InputError("is nested too deep", path=path, line=event.start_mark.line + 1)


class _Reader:
    """Walks the nodes of one file and collects places and mistakes."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.values: dict[Location, Place] = {}
        self.keys: dict[Location, Place] = {}
        self.mistakes: list[Mistake] = []
        self.seen = 0

    def value(self, node: Any, location: Location, around: tuple[int, ...]) -> Any:
        self.seen += 1
        place = _place(node)
        if self.seen > _LARGEST_TREE:
            raise InputError("its aliases stand for too many values", path=self.path, line=place.line)
        if id(node) in around:
            raise InputError("an alias stands for a part that holds it", path=self.path, line=place.line)
        self.values[location] = place
        if node.id == "scalar" and len(node.value) > _LONGEST_TEXT:
            raise InputError(f"a text is longer than {_LONGEST_TEXT} characters", path=self.path, line=place.line)
        if node.tag not in _PLAIN_TAGS:
            self._mistake(node, f"the tag {node.tag} is not used here", "Write the value without a tag.")
        inside = (*around, id(node))
        if node.id == "mapping":
            return self._mapping(node, location, inside)
        if node.id == "sequence":
            return [self.value(item, (*location, at), inside) for at, item in enumerate(node.value)]
        return None if node.style not in _QUOTING and node.value in _NOTHING else node.value

    def _mapping(self, node: Any, location: Location, around: tuple[int, ...]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._mistake(key_node, "a key is a word", "Write `key: value`.")
                continue
            key = str(key_node.value)
            if key in content:
                first = self.keys[(*location, key)].line
                self._mistake(key_node, f"'{key}' stands here a second time", f"The first is in line {first}.")
                continue
            self.keys[(*location, key)] = _place(key_node)
            content[key] = self.value(value_node, (*location, key), around)
        return content

    def _mistake(self, node: Any, message: str, hint: str) -> None:
        place = _place(node)
        self.mistakes.append(Mistake(message, self.path, place.line, place.column, hint))


def _place(node: Any) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
