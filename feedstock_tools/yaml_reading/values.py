"""YAML texts as plain values: only strings, for variant files, or YAML's usual types, for settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import Schema, as_input_error, compose, place_of

#: The unquoted scalars that rattler-build reads as numbers.
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
#: The tags of scalars that JSON's types keep as text: strings, dates, and the key `<<`.
_TEXTS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge"})
_value_of = attrgetter("value")


def parse_texts(text: str, path: Path | None = None) -> Any:
    """Mappings, lists and strings: every scalar as written. Errors as for `nodes.compose`."""
    return _plain(text, path, _value_of)


def parse_with_numbers(text: str, path: Path | None, number: Callable[[str], str]) -> Any:
    """Like `parse_texts`, but `number` converts unquoted whole numbers."""

    def scalar(node: Any) -> str:
        value: str = node.value
        return number(value) if not node.style and _WHOLE.fullmatch(value) else value

    return _plain(text, path, scalar)


def parse_types(text: str, path: Path | None = None, schema: Schema = Schema.TYPES, *, first: bool = False) -> Any:
    """Values of YAML's usual types.

    Args:
        schema: `TYPES`, or `TEXT_NUMBERS` to keep numbers as written.
        first: read the first document and ignore the others.

    Raises:
        InputError: as for `nodes.compose`; also a tag that names something other than plain data.
    """
    node = compose(text, path, schema, first=first)
    if node is None:
        return None
    import yaml

    try:
        return yaml.constructor.SafeConstructor().construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise as_input_error(error, path) from error


def parse_json_types(text: str, path: Path | None = None) -> Any:
    """Values of JSON's types: numbers, booleans and null; dates are strings, and `<<` is a plain key."""
    return _plain(text, path, _json_scalar, Schema.TYPES)


def _json_scalar(node: Any) -> Any:
    if node.tag in _TEXTS:
        return node.value
    import yaml

    return yaml.constructor.SafeConstructor().construct_object(node)


def parse_first(text: str, path: Path | None = None) -> Any:
    """The first document of a file of settings, with YAML's usual types; any others are ignored."""
    return parse_types(text, path, first=True)


def read_texts(path: Path, *, within: Path | None) -> Any:
    """The content of a file by `parse_texts`; `within` and errors also as for `reading.read_text`."""
    return parse_texts(read_text(path, within=within), path)


def _plain(text: str, path: Path | None, scalar: Callable[[Any], Any], schema: Schema = Schema.TEXTS) -> Any:
    node = compose(text, path, schema)
    if node is None:
        return None
    import yaml

    try:
        return _Plain(path, scalar).value(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise as_input_error(error, path) from error


class _Plain:
    """Converts nodes to values; aliases of a node share one object, as in PyYAML."""

    def __init__(self, path: Path | None, scalar: Callable[[Any], Any]) -> None:
        self.path = path
        self.scalar = scalar
        self._converted: dict[int, Any] = {}

    def value(self, node: Any) -> Any:
        if node.id == "scalar":
            return self.scalar(node)
        if id(node) not in self._converted:
            if node.id == "sequence":
                self._converted[id(node)] = [self.value(item) for item in node.value]
            else:
                self._converted[id(node)] = {self._key(key): self.value(value) for key, value in node.value}
        return self._converted[id(node)]

    def _key(self, node: Any) -> Any:
        if node.id != "scalar":
            place = place_of(node)
            message = "a key must be a single value, not a list or a mapping"
            raise InputError(message, path=self.path, line=place.line, column=place.column)
        return self.scalar(node)
