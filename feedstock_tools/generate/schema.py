"""The JSON Schema of the spec, for editors that complete and check while one writes."""

from __future__ import annotations

from typing import Any

from feedstock_tools.generate.spec import Spec

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """The schema of `feedstock.yaml` (JSON Schema 2020-12), as values that `json` can write."""
    schema = Spec.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "feedstock.yaml",
        **{key: value for key, value in schema.items() if key != "title"},
    }
