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
    from feedstock_tools.generate.spec.model import Spec, json_schema
    from feedstock_tools.generate.spec.reading import read_spec, spec_from_text
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
    "applying": "FileChange apply compare",
    "generating": "Generated generate",
    "spec.model": "Spec json_schema",
    "spec.reading": "read_spec spec_from_text",
    "texts.rendering": "render",
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
