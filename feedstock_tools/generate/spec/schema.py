"""The JSON Schema of the spec, for editors that complete and check while you type.

It is of draft 07, the newest that editors support throughout, and keeps to what SchemaStore asks of a schema: an `$id`,
a title and descriptions, no unknown keys, and nothing that validators ignore, such as keywords beside a `$ref`.
"""

from __future__ import annotations

from typing import Any

from feedstock_tools.generate.spec.model import Spec

#: Where SchemaStore would publish it.
SCHEMA_ID = "https://json.schemastore.org/feedstock-tools.json"
_EXAMPLE: dict[str, Any] = {
    "name": "demo",
    "version": "1.2.0",
    "sources": [{"url": "https://example.org/demo-{version}.tar.gz", "sha256": "0" * 64}],
    "platforms": {"linux-64": None, "linux-aarch64": None},
    "cuda": {"architectures": "common"},
    "outputs": [
        {
            "name": "libdemo",
            "kind": "library",
            "script": {"template": "cmake"},
            "requirements": {"build": [{"compiler": "cxx"}, {"compiler": "cuda"}, {"stdlib": "c"}, "cmake", "ninja"]},
            "run_exports": [{"pin": "libdemo", "max": "x.x"}],
            "test": {"commands": ["demo --version"]},
        }
    ],
    "about": {"homepage": "https://example.org", "license": "MIT", "license_file": "LICENSE", "summary": "A demo"},
    "maintainers": ["someone"],
}


def json_schema() -> dict[str, Any]:
    """The schema of `feedstock.yaml` (JSON Schema draft 07), as values for `json`."""
    schema = _for_editors(Spec.model_json_schema())
    return {
        **{key: value for key, value in schema.items() if key != "description"},
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "feedstock of feedstock-tools",
        "description": "CPU and GPU packages of a conda-forge feedstock: its recipe and variant files follow from it",
        "examples": [_EXAMPLE],
    }


def _for_editors(schema: Any) -> Any:
    """The schema without the titles that repeat its keys, with numbers where texts are read, and `$ref` alone.

    An editor reads `3.10` as a number, whereas the spec is read as strings. Draft 07 ignores what stands beside a
    `$ref`.
    """
    if isinstance(schema, list):
        return [_for_editors(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    read = {key: _for_editors(part) for key, part in schema.items() if key != "title" or not isinstance(part, str)}
    if read.get("type") == "string" and "enum" not in read and "const" not in read:
        read["type"] = ["string", "number"]
    if "$ref" in read and len(read) > 1:
        return {"allOf": [{"$ref": read.pop("$ref")}], **read}
    return read
