"""From a spec to recipe files: `generate` does it in one step, by way of `read_spec`, `render` and `compare`.

    made = generate(Path("feedstock"))
    made.apply()

Names are imported on first use, so that the command line starts without pydantic and Jinja.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feedstock_tools.generate.applying import FileChange, apply, compare
    from feedstock_tools.generate.generating import Generated, generate
    from feedstock_tools.generate.spec.model import Spec
    from feedstock_tools.generate.spec.reading import read_spec, spec_from_text
    from feedstock_tools.generate.spec.schema import json_schema
    from feedstock_tools.generate.texts.rendering import render

__all__ = [
    "FileChange",
    "Generated",
    "Spec",
    "apply",
    "compare",
    "generate",
    "json_schema",
    "read_spec",
    "render",
    "spec_from_text",
]

_MODULES = {
    "FileChange": "applying",
    "Generated": "generating",
    "Spec": "spec.model",
    "apply": "applying",
    "compare": "applying",
    "generate": "generating",
    "json_schema": "spec.schema",
    "read_spec": "spec.reading",
    "render": "texts.rendering",
    "spec_from_text": "spec.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
