"""The JSON Schema accepts what the reader accepts, as an editor sees it: with numbers, short forms and all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from feedstock_tools.data import data_folder
from feedstock_tools.generate.spec.model import json_schema
from feedstock_tools.generate.spec.reading import read_spec

SCHEMA = json_schema()
DEMO = Path(__file__).parent / "data" / "demo" / "feedstock.yaml"
SPECS = [DEMO, *sorted(data_folder("examples").glob("*/feedstock.yaml"))]
#: Those of draft 07 that it uses, and `$defs`, to which references point.
KEYWORDS = {
    *("$schema", "$id", "$ref", "$defs", "title", "description", "default", "examples", "type", "enum", "const"),
    *("properties", "patternProperties", "additionalProperties", "required", "minProperties", "items", "minItems"),
    *("anyOf", "oneOf", "allOf", "pattern", "maxLength", "minimum", "maximum", "exclusiveMaximum"),
}
VALIDATOR = Draft7Validator(SCHEMA)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.parent.name)
def test_a_spec_as_an_editor_reads_it(path: Path) -> None:
    assert not [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))]


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "v2"), ("outputs", [{"name": "demo"}]), ("cuda", {"guards": "minor"}), ("about", {}), ("x", 1)],
)
def test_a_mistake_as_an_editor_sees_it(key: str, value: Any) -> None:
    assert not VALIDATOR.is_valid({**yaml.safe_load(DEMO.read_text()), key: value})


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from parts(item)
    elif isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            inner = value.values() if key in ("properties", "patternProperties", "$defs") else [value]
            for part in inner if key not in ("default", "examples", "const", "enum") else ():
                yield from parts(part)


def test_it_is_what_schemastore_asks_for() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"].startswith("https://json.schemastore.org/")
    assert SCHEMA["title"][0].islower() and not SCHEMA["title"].startswith(("a ", "the "))
    for part in parts(SCHEMA):
        assert "$ref" not in part or len(part) == 1, "draft 07 ignores what stands beside a $ref"
        assert set(part) <= KEYWORDS
        assert not str(part.get("description", "")).endswith(":")
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert [key for key, value in part["properties"].items() if "description" not in value] == []


def test_its_example_is_a_spec(tmp_path: Path) -> None:
    (example,) = SCHEMA["examples"]
    VALIDATOR.validate(example)
    (tmp_path / "feedstock.yaml").write_text(yaml.safe_dump(example))
    assert read_spec(tmp_path).name == "demo"


def test_check_jsonschema_accepts_every_example(tmp_path: Path) -> None:
    schema = tmp_path / "feedstock.schema.json"
    schema.write_text(json.dumps(SCHEMA))
    check = [sys.executable, "-m", "check_jsonschema"]
    ran = [
        subprocess.run([*check, *words], capture_output=True, text=True, check=False)
        for words in (["--check-metaschema", str(schema)], ["--schemafile", str(schema), *map(str, SPECS)])
    ]
    assert [run.returncode for run in ran] == [0, 0], [run.stdout + run.stderr for run in ran]
