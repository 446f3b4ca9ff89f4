"""A fast reader for long variant files: every top-level key separately, and once for all platforms that share its text.

It exists because conda-forge's pinning has 3,000 lines, and a rerender reads it once for each platform.
PyYAML creates a node and a value for every scalar, which takes 40 to 78 ms for each platform; here it takes 3 to 18 ms
(benchmarks/rerenders/rerender.py measures the whole). Blocks of simple values go through `blocks`; everything else,
especially anchors, goes to PyYAML, so that both readers always agree (tests/yaml_reading/test_quick.py compares them).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.blocks import NotSimpleError, parse_block
from feedstock_tools.yaml_reading.values import parse_texts

_KEY_START = re.compile(r"^(?=[^\s#\-])", re.MULTILINE)
#: More keys than any variant file has; beyond this number they are parsed together.
_MOST_PARTS = 4_000
_MARK = re.compile(r"[&*](?=[^\s,\[\]{}])")


def may_have_anchors(text: str) -> bool:
    """Whether YAML's anchors or aliases, which refer to other parts of a file, may be in `text`.

    They begin a node: `3.9.* *netlib` is a string.
    """
    for mark in _MARK.finditer(text):
        end = mark.start()
        while end and text[end - 1] in " \t":
            end -= 1
        if end == 0 or text[end - 1] in "\n-?:,[{" or (end < mark.start() and _is_tag(text, end)):
            return True
    return False


def _is_tag(text: str, end: int) -> bool:
    """Whether the word that ends at `end` is a tag, which may precede a mark."""
    start = end
    while start and not text[start - 1].isspace():
        start -= 1
    return text[start] == "!"


def parse_variant_yaml(text: str, path: Path | None) -> Any:
    """Like `parse_texts`, but faster for texts with many simple keys; parts of the result are shared between calls."""
    if may_have_anchors(text):
        return parse_texts(text, path)
    content: dict[str, Any] = {}
    parts = _KEY_START.split(text)
    if len(parts) > _MOST_PARTS:
        return parse_texts(text, path)
    for part in parts:
        if not part.strip():
            continue
        entries = _part(part)
        if entries is None:
            return parse_texts(text, path)
        content.update(entries)
    return content


@lru_cache(maxsize=4096)
def _part(text: str) -> dict[str, Any] | None:
    try:
        content = parse_block(text, _text, "")
    except NotSimpleError:
        try:
            content = parse_texts(text)
        except InputError:
            return None
    return {} if content in (None, "") else content if isinstance(content, dict) else None


def _text(scalar: str) -> str:
    return scalar[1:-1] if scalar[0] in "'\"" else scalar
