"""YAML as plain values with their positions: every scalar a string, every mapping and list with its places.

Only strings, lists and mappings are constructed, whatever tags a file may have. Duplicate keys are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.yaml_reading.nodes import Place, compose, place_of

Location = tuple[str | int, ...]

#: A spec has some hundred lines; these limits are far above what a person writes.
_LARGEST_TREE = 20_000
_DEEPEST = 40
_LONGEST_TEXT = 10_000
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_NOTHING = frozenset({"", "~", "null"})
_QUOTING = frozenset("'\"|>")


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and their places: of keys (`keys`) and of values (`values`)."""

    path: Path | None
    content: Any
    values: dict[Location, Place] = field(default_factory=dict)
    keys: dict[Location, Place] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        """The place of `location`, or of the innermost part around it that the file has."""
        first, second = (self.keys, self.values) if of_key else (self.values, self.keys)
        for end in range(len(location), -1, -1):
            place = first.get(location[:end]) or second.get(location[:end])
            if place is not None:
                return place
        return Place(1, 1)


def parse_document(text: str, path: Path | None = None) -> Document:
    """Read a YAML text.

    Duplicate keys in a mapping are in `mistakes` and the first one counts, so that the rest can be checked too.

    Raises:
        InputError: not YAML, empty, nested too deep, too large with aliases followed, or an alias that contains itself.
    """
    node = compose(text, path)
    if node is None:
        raise InputError("is empty", path=path)
    reader = _Reader(path)
    content = reader.value(node, ())
    return Document(path, content, reader.values, reader.keys, tuple(reader.mistakes))


class _Reader:
    """Walks the nodes of one file and collects places and mistakes."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.values: dict[Location, Place] = {}
        self.keys: dict[Location, Place] = {}
        self.mistakes: list[Mistake] = []
        self.seen = 0

    def value(self, node: Any, location: Location) -> Any:
        self.seen += 1
        place = place_of(node)
        if self.seen > _LARGEST_TREE:
            raise InputError("its aliases expand to too many values", path=self.path, line=place.line)
        if len(location) > _DEEPEST:
            raise InputError("is nested too deep", path=self.path, line=place.line)
        self.values[location] = place
        if node.id == "scalar" and len(node.value) > _LONGEST_TEXT:
            raise InputError(f"a string is longer than {_LONGEST_TEXT} characters", path=self.path, line=place.line)
        if node.tag not in _PLAIN_TAGS:
            self._mistake(node, f"the tag {node.tag} is not allowed", "Write the value without a tag.")
        if node.id == "mapping":
            return self._mapping(node, location)
        if node.id == "sequence":
            return [self.value(item, (*location, at)) for at, item in enumerate(node.value)]
        return None if node.style not in _QUOTING and node.value in _NOTHING else node.value

    def _mapping(self, node: Any, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._mistake(key_node, "a key must be a word", "Write `key: value`.")
                continue
            key = str(key_node.value)
            if key in content:
                first = self.keys[(*location, key)].line
                self._mistake(key_node, f"'{key}' is a duplicate key", f"The first one is in line {first}.")
                continue
            self.keys[(*location, key)] = place_of(key_node)
            content[key] = self.value(value_node, (*location, key))
        return content

    def _mistake(self, node: Any, message: str, hint: str) -> None:
        place = place_of(node)
        self.mistakes.append(Mistake(message, self.path, place.line, place.column, hint))
