"""Read a YAML file of facts and hold it against its JSON Schema: all mistakes at once, each with line and column.

The part of JSON Schema that such files need, after json-schema.org, draft 2020-12: type, enum, pattern, properties,
required, additionalProperties, propertyNames (pattern only), items, minItems, uniqueItems and $ref into $defs. Editors
read the same schema files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import Schema, compose

if TYPE_CHECKING:
    from yaml import MappingNode, ScalarNode, SequenceNode

__all__ = ["read_document"]

_LARGEST = 2 * 1024 * 1024

_TYPES = {
    "tag:yaml.org,2002:str": "string",
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:map": "object",
    "tag:yaml.org,2002:seq": "array",
    # A date is text to JSON.
    "tag:yaml.org,2002:timestamp": "string",
}


def read_document(path: Path, schema: Path) -> Any:
    """The content of the YAML file `path`, as dictionaries, lists and scalars.

    Args:
        schema: a JSON Schema file, ours and trusted.

    Raises:
        InputError: the file cannot be read, is no YAML, or breaks the schema; all breaks in one error.
    """
    node = compose(read_text(path, _LARGEST), path, Schema.TYPES)
    if node is None:
        raise InputError("is empty", path=path)
    root = json.loads(schema.read_text(encoding="utf-8"))
    reading = _Reading(path, root)
    value = reading.value(node, root, "")
    if reading.mistakes:
        raise InputError.of(reading.mistakes)
    return value


@dataclass
class _Reading:
    """One pass over a document: builds its value and collects what is wrong."""

    path: Path
    root: Mapping[str, Any]
    mistakes: list[Mistake] = field(default_factory=list)

    def value(self, node: Any, schema: Mapping[str, Any], at: str) -> Any:
        if "$ref" in schema:
            schema = self.root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        kind = _TYPES.get(node.tag, node.tag)
        expected = schema.get("type")
        allowed = [expected] if isinstance(expected, str) else expected
        if allowed and kind not in allowed and not (kind == "integer" and "number" in allowed):
            return self.wrong(node, f"{at or 'the file'} is to be {' or '.join(allowed)}, not {kind}")
        if kind == "object":
            return self.mapping(cast("MappingNode", node), schema, at)
        if kind == "array":
            return self.sequence(cast("SequenceNode", node), schema, at)
        return self.scalar(cast("ScalarNode", node), kind, schema, at)

    def wrong(self, node: Any, message: str) -> None:
        self.mistakes.append(Mistake(message, self.path, node.start_mark.line + 1, node.start_mark.column + 1))

    def mapping(self, node: MappingNode, schema: Mapping[str, Any], at: str) -> dict[str, Any]:
        properties = schema.get("properties", {})
        names = re.compile(schema.get("propertyNames", {}).get("pattern", ""))
        others = schema.get("additionalProperties", True)
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            place = f"{at}.{key}" if at else str(key)
            if key_node.tag != "tag:yaml.org,2002:str":
                self.wrong(key_node, f"the key {key} under {at or 'the file'} is to be in quotes")
            elif key in found:
                self.wrong(key_node, f"{place} is there twice")
            elif not names.search(key):
                self.wrong(key_node, f"{place} is not named as expected ({names.pattern})")
            elif key in properties:
                found[key] = self.value(value_node, properties[key], place)
            elif others is False:
                self.wrong(key_node, f"{place} is not known; known are {', '.join(properties)}")
            else:
                found[key] = self.value(value_node, {} if others is True else others, place)
        for name in schema.get("required", ()):
            if name not in {key_node.value for key_node, _ in node.value}:
                self.wrong(node, f"{at or 'the file'} has no {name}")
        return found

    def sequence(self, node: SequenceNode, schema: Mapping[str, Any], at: str) -> list[Any]:
        items = [self.value(item, schema.get("items", {}), f"{at}[{i}]") for i, item in enumerate(node.value)]
        if len(items) < schema.get("minItems", 0):
            self.wrong(node, f"{at} is to have {schema['minItems']} items or more")
        if schema.get("uniqueItems") and len({repr(item) for item in items}) < len(items):
            self.wrong(node, f"{at} names something twice")
        return items

    def scalar(self, node: ScalarNode, kind: str, schema: Mapping[str, Any], at: str) -> Any:
        text: str = node.value
        value = _scalar(text, kind)
        if "enum" in schema and value not in schema["enum"]:
            choices = ", ".join("null" if choice is None else str(choice) for choice in schema["enum"])
            self.wrong(node, f"{at} is '{text}'; it is to be one of {choices}")
        if kind == "string" and not re.search(schema.get("pattern", ""), text):
            self.wrong(node, f"{at} is '{text}', which is not written as expected ({schema['pattern']})")
        return value


def _scalar(text: str, kind: str) -> Any:
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "boolean":
        return text.lower() == "true"
    return None if kind == "null" else text
