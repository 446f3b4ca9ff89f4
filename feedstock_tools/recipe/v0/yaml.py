"""The YAML of a rendered `meta.yaml`, with numbers as strings.

Renderings of one recipe have most of their sections and outputs in common, so each part is parsed once. Parts are cut
at lines that begin a section or an output; if YAML might read them differently, the whole text is parsed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.blocks import NotSimpleError, parse_block
from feedstock_tools.yaml_reading.nodes import Schema
from feedstock_tools.yaml_reading.quick import may_have_anchors
from feedstock_tools.yaml_reading.values import parse_types

_NUMBER = re.compile(r"[0-9][0-9.]*")
#: Words that YAML's types give another value.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null"})
_SECTIONS = ("package", "source", "build", "requirements", "test", "app", "outputs", "about", "extra")
_SECTION_START = re.compile(r"^(?=[^\s#\-])", re.MULTILINE)
_OUTPUTS_START = re.compile(r"outputs:[ \t]*\n(?:[ \t]*\n)*(?=([ ]*)- )")
#: More sections than any recipe has; beyond this number they are parsed together.
_MOST_PARTS = 200


@lru_cache(maxsize=8192)
def _scalar(text: str) -> Any:
    """The value of a scalar that `blocks` takes for simple; most are texts, and need no reader of YAML."""
    if text[0] in "'\"":
        return text[1:-1]
    if _NUMBER.fullmatch(text) or (text[0].isalpha() and text.lower() not in _WORDS):
        return text
    return parse_types(text, None, Schema.TEXT_NUMBERS)


@lru_cache(maxsize=4096)
def _parsed(text: str, path: Path) -> Any:
    try:
        return parse_block(text, _scalar)
    except (NotSimpleError, InputError):
        return parse_types(text, path, Schema.TEXT_NUMBERS)


def _item(text: str, path: Path) -> Any:
    items = _parsed(text, path)
    if not isinstance(items, list) or len(items) != 1:
        raise InputError("must be one item of a list", path=path)
    return items[0]


def _section(text: str, path: Path) -> dict[str, Any]:
    start = _OUTPUTS_START.match(text)
    if start is None:
        section = _parsed(text, path)
        if not isinstance(section, dict):
            raise InputError("must be a mapping of sections", path=path)
        return section
    items = re.split(rf"^(?={start.group(1)}- )", text[start.end() :], flags=re.MULTILINE)
    return {"outputs": [_item(item, path) for item in items if item.strip()]}


@lru_cache(maxsize=256)
def _sections(text: str, path: Path) -> dict[str, Any]:
    content: dict[str, Any] = {}
    try:
        if may_have_anchors(text):
            raise InputError("has anchors, which span sections", path=path)
        parts = _SECTION_START.split(text)
        if len(parts) > _MOST_PARTS:
            raise InputError("has too many sections to parse one by one", path=path)
        for part in parts:
            if part.strip():
                content.update(_section(part, path))
    except InputError:
        content = _whole(text, path)
    for name in _SECTIONS:
        if name in content and not content[name]:
            content[name] = {}
        value = content.get(name, {})
        if not isinstance(value, dict) and not (name in ("source", "outputs") and isinstance(value, list)):
            raise InputError(f"the section '{name}' must be a mapping", path=path)
    return content


def _whole(text: str, path: Path) -> dict[str, Any]:
    try:
        content = _parsed(text, path)
    except InputError as error:
        mistake = error.mistakes[0]
        lines = text.splitlines()
        near = lines[mistake.line - 1].strip()[:80] if mistake.line and mistake.line <= len(lines) else ""
        raise InputError(
            f"rendered, it {mistake.message}", path=path, hint=f"Near: {near}" if near else None
        ) from error
    if content is not None and not isinstance(content, dict):
        raise InputError("must be a mapping of sections", path=path)
    return dict(content or {})


def parse_rendered(text: str, path: Path) -> dict[str, Any]:
    """The sections of a rendered recipe; their contents are shared with other renderings and must not be changed.

    Raises:
        InputError: it is not YAML, or a section is not a mapping.
    """
    return dict(_sections(text, path))
