"""The content of a spec as the text of a feedstock.yaml: short mappings in braces, everything else in blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from feedstock_tools.generate.texts.lines import quoted

_WIDTH = 120
_NOT_IN_FLOW = re.compile(r"""[,\[\]{}"'#&*!|>%@`\n]|: |:$|^[\s?:-]|\s$""")
#: Keys before which a blank line makes the file easier to read.
_SECTIONS = frozenset({"sources", "platforms", "build", "cuda", "variants", "skip", "outputs", "about", "maintainers"})


def spec_text(content: Mapping[str, Any]) -> str:
    """The text of a spec."""
    lines: list[str] = []
    for key, value in content.items():
        if key in _SECTIONS and lines:
            lines.append("")
        lines += _keyed(key, value, 0)
    spaced = [line for previous, line in zip(["", *lines], lines, strict=False) if line or previous]
    return "\n".join(spaced).rstrip() + "\n"


def _keyed(key: str, value: Any, indent: int) -> list[str]:
    blank = " " * indent
    name = f"{blank}{quoted(str(key))}:"
    if isinstance(value, str) and "\n" in value:
        return [f"{name} |", *(f"{blank}  {line}".rstrip() for line in value.splitlines())]
    if isinstance(value, Mapping) and value:
        short = f"{name} {_flow(value)}" if _is_short(value) else ""
        if short and len(short) <= _WIDTH and key not in _SECTIONS:
            return [short]
        return [name, *(line for inner, child in value.items() for line in _keyed(inner, child, indent + 2))]
    if isinstance(value, list) and value:
        return [name, *(line for item in value for line in _item(item, indent + 2, key == "outputs"))]
    return [f"{name} {_scalar(value)}".rstrip()]


def _item(item: Any, indent: int, spaced: bool) -> list[str]:
    blank = " " * indent
    if isinstance(item, Mapping):
        short = f"{blank}- {_flow(item)}" if _is_short(item) and "name" not in item else ""
        if short and len(short) <= _WIDTH:
            return [short]
        first, *rest = (line for key, value in item.items() for line in _keyed(key, value, indent + 2))
        lines = [f"{blank}- {first.strip()}", *rest]
        return [*lines, ""] if spaced else lines
    if isinstance(item, list):
        return [f"{blank}- [{', '.join(map(_in_flow, item))}]"]
    return [f"{blank}- {_scalar(item)}"]


def _is_short(value: Mapping[str, Any]) -> bool:
    return all(isinstance(item, str | int) and "\n" not in str(item) for item in value.values())


def _flow(value: Mapping[str, Any]) -> str:
    return f"{{{', '.join(f'{key}: {_in_flow(item)}' for key, item in value.items())}}}"


def _in_flow(value: Any) -> str:
    text = str(value)
    if '"' in text and "'" not in text and "\\" not in text and "\n" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False) if not text or _NOT_IN_FLOW.search(text) else text


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list):
        return "[]"
    text = str(value)
    if text in ("true", "false") or re.fullmatch(r"\d+(\.\d+)*", text):
        return text
    if '"' in text and "'" not in text and "\\" not in text and json.dumps(text) == quoted(text):
        return f"'{text}'"
    return quoted(text)
