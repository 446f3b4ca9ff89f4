"""docs/spec.md describes every key, and its examples are valid."""

from __future__ import annotations

import re

import pytest
import yaml

from feedstock_tools.generate.spec.model import json_schema
from feedstock_tools.generate.spec.reading import spec_from_text
from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
LEAST = {
    "name": "demo",
    "version": "1.0",
    "platforms": {"linux-64": None, "osx-64": None},
    "cuda": {"versions": ["12.9"]},
    "outputs": [
        {
            "name": "demo",
            "kind": "library",
            "requirements": {"build": [{"compiler": "cuda"}]},
            "test": {"commands": ["demo"]},
        }
    ],
    "about": {
        "homepage": "https://example.org",
        "license": "MIT",
        "license_file": "LICENSE",
        "summary": "A demonstration",
    },
    "maintainers": ["someone"],
}


def test_every_key_is_documented() -> None:
    schema = json_schema()

    keys = {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", {})}
    missing = {key for key in keys if not re.search(rf"\b{key}\b", TEXT)}
    assert not missing


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_read(example: str) -> None:
    shown = yaml.safe_load(example)
    rest = {key: value for key, value in LEAST.items() if key not in shown}

    spec = spec_from_text(example + yaml.safe_dump(rest))

    assert spec.model_fields_set == shown.keys() | rest.keys()
