"""Variant files are long and plain: keys with lists of simple values. Those are read here, and the rest by PyYAML.

Every top-level key is read on its own, and once for all platforms that have it alike.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants.read import parse_plain_yaml

__all__ = ["parse_variant_yaml"]

_KEY_START = re.compile(r"^(?=[^\s#\-])", re.MULTILINE)
#: A scalar that means just what it says: nothing that YAML takes for a mark, comment or key in it.
_PLAIN = r"[A-Za-z0-9_./](?:[^\n#:'\"&*!|>%@`\[\]{},]|:(?=\S))*?"
_SIMPLE = re.compile(rf"([A-Za-z_]\w*):(?:[ ]+({_PLAIN}))?[ ]*\n((?:[ ]*\n|[ ]*-[ ]+{_PLAIN}[ ]*\n)*)\Z")
_ITEM = re.compile(rf"^([ ]*)-[ ]+({_PLAIN})[ ]*$", re.MULTILINE)
_ANCHOR = re.compile(r"(?:^|[\s\[,{:])[&*]\w", re.MULTILINE)


def parse_variant_yaml(text: str, path: Path | None) -> Any:
    """As `parse_plain_yaml`, quicker for texts of many simple keys; parts of the result are shared between calls."""
    if _ANCHOR.search(text):
        return parse_plain_yaml(text, path)
    content: dict[str, Any] = {}
    for part in _KEY_START.split(text):
        if not part.strip():
            continue
        known = _part(part)
        if known is None:
            return parse_plain_yaml(text, path)
        content.update(known)
    return content


@lru_cache(maxsize=4096)
def _part(text: str) -> dict[str, Any] | None:
    simple = _SIMPLE.match(text)
    if simple is not None:
        key, value, items = simple.groups()
        found = _ITEM.findall(items)
        if not (value and found) and len({indent for indent, _ in found}) < 2:
            return {key: value if value else [item for _, item in found] if found else ""}
    try:
        content = parse_plain_yaml(text)
    except InputError:
        return None
    return {} if content in (None, "") else content if isinstance(content, dict) else None
