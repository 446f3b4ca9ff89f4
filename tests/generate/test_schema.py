"""The JSON Schema accepts what the reader accepts, as an editor sees it: with numbers, short forms and all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.data import data_folder
from feedstock_tools.generate import json_schema

SCHEMA = json_schema()
DEMO = Path(__file__).parent / "data" / "demo" / "feedstock.yaml"
SPECS = [DEMO, *sorted(data_folder("examples").glob("*/feedstock.yaml"))]
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def _faults(value: Any, schema: Any, at: str = "") -> list[str]:
    """The places where a value breaks a schema, for the part of JSON Schema that ours uses."""
    if "$ref" in schema:
        return _faults(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        tried = [_faults(value, choice, at) for choice in choices]
        return [] if [] in tried else [fault for faults in tried for fault in faults]
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(isinstance(value, TYPES[kind]) for kind in kinds):
        return [f"{at}: {value!r} is not {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is not in {schema['enum']}"]
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return [f"{at}: {value!r} does not match {schema['pattern']}"]
    if isinstance(value, list):
        return [fault for n, item in enumerate(value) for fault in _faults(item, schema.get("items", {}), f"{at}[{n}]")]
    return _faults_of_mapping(value, schema, at) if isinstance(value, dict) else []


def _faults_of_mapping(value: dict[str, Any], schema: Any, at: str) -> list[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    faults = [f"{at}: {key} is missing" for key in schema.get("required", ()) if key not in value]
    for key, part in value.items():
        if key not in known and others is False:
            faults.append(f"{at}: {key} is unknown")
        else:
            faults += _faults(part, known.get(key, {} if others is True else others), f"{at}.{key}")
    return faults


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.parent.name)
def test_a_spec_as_an_editor_reads_it(path: Path) -> None:
    assert not _faults(yaml.safe_load(path.read_text()), SCHEMA)


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "v2"), ("outputs", [{"name": "demo"}]), ("cuda", {"guards": "minor"}), ("about", {}), ("x", 1)],
)
def test_a_mistake_as_an_editor_sees_it(key: str, value: Any) -> None:
    assert _faults({**yaml.safe_load(DEMO.read_text()), key: value}, SCHEMA)
