"""The JSON Schema of the spec, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from feedstock_tools.generate.spec.model import Spec

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """The schema of `feedstock.yaml` (JSON Schema 2020-12), as values for `json`."""
    schema = _with_numbers(Spec.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "feedstock.yaml",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _with_numbers(schema: Any) -> Any:
    """The schema for editors, which read `3.10` as a number, whereas the spec is read as strings."""
    if isinstance(schema, list):
        return [_with_numbers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    read = {key: _with_numbers(part) for key, part in schema.items()}
    if read.get("type") == "string" and "enum" not in read and "const" not in read:
        read["type"] = ["string", "number"]
    return read
