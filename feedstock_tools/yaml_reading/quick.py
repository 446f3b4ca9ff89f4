"""A fast reader for long variant files: every top-level key separately, and once for all platforms that share its text.

It exists because conda-forge's pinning has 3,000 lines, and a rerender reads it once for each platform.
PyYAML creates a node and a value for every scalar, which takes 40 to 78 ms for each platform; here it takes 3 to 18 ms
(benchmarks/rerenders/rerender.py measures the whole). Blocks of simple values are read line by line
(`parse_block`); everything else, especially anchors, goes to PyYAML, so that both readers always agree
(tests/yaml_reading/test_quick.py compares them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.nodes import parse_texts

#: A literal value: it contains nothing that YAML reads as a mark, comment or key.
_PLAIN = r"[A-Za-z0-9_./](?:[ !\"$-9;-~]|:(?=[!-~]))*?"
#: The same, or in quotes, without escapes.
_SCALAR = rf"{_PLAIN}|'[ -&(-~]*'|\"[ !#-\[\]-~]*\""
_LINE = re.compile(rf"([ ]*)(-[ ]+)?(?:([A-Za-z_][\w.-]*):(?:[ ]+({_SCALAR}))?|({_SCALAR}))[ ]*", re.ASCII)
#: Deeper blocks are left to PyYAML, and longer lines.
_DEEPEST = 60
_LONGEST_LINE = 1_000

#: Returns the value for a scalar and its quotes.
Scalar = Callable[[str], Any]


class NotSimpleError(Exception):
    """The text is more than blocks of simple values, or not YAML at all."""


class _Line(NamedTuple):
    """`indent` is the column where it begins, `column` the one after the mark of a list item."""

    indent: int
    column: int
    key: str | None
    value: str | None

    @property
    def is_item(self) -> bool:
        return self.column > self.indent


@lru_cache(maxsize=8192)
def _line(text: str) -> _Line | None:
    """A parsed line; None for a blank one."""
    if not text.strip(" "):
        return None
    match = _LINE.fullmatch(text) if len(text) <= _LONGEST_LINE else None
    if match is None:
        raise NotSimpleError
    blanks, mark, key, value, alone = match.groups(default="")
    if len(blanks) > _DEEPEST or not (key or mark):
        raise NotSimpleError
    column = len(blanks) + len(mark)
    return _Line(len(blanks), column, key or None, value or None) if key else _Line(len(blanks), column, None, alone)


def parse_block(text: str, scalar: Scalar, nothing: Any = None) -> Any:
    """The value of a text of blocks; equal values may be the same object.

    Args:
        scalar: reads a value or key.
        nothing: the value of a key without one.

    Raises:
        NotSimpleError: PyYAML must read the text.
    """
    lines = [line for line in map(_line, text.split("\n")) if line is not None]
    if not lines:
        raise NotSimpleError
    content, end = _block(lines, 0, scalar, nothing)
    if end < len(lines):
        raise NotSimpleError
    return content


def _block(lines: Sequence[_Line], at: int, scalar: Scalar, nothing: Any) -> tuple[Any, int]:
    """The mapping or list that begins at a line, and the number of the line after it."""
    first = lines[at]
    if first.column == first.indent:
        return _mapping(lines, at, first.indent, scalar, nothing)
    items: list[Any] = []
    while at < len(lines):
        line = lines[at]
        if line.indent != first.indent or line.column == line.indent:
            break
        if line.key is not None:
            item, at = _mapping(lines, at, line.column, scalar, nothing)
        else:
            item, at = scalar(line.value or ""), at + 1
        items.append(item)
    if at < len(lines) and lines[at].indent > first.indent:
        raise NotSimpleError
    return items, at


def _mapping(lines: Sequence[_Line], at: int, column: int, scalar: Scalar, nothing: Any) -> tuple[dict[Any, Any], int]:
    """Like `_block`, for a mapping whose keys are in one column; the first may follow the mark of an item."""
    content: dict[Any, Any] = {}
    start = at
    while at < len(lines):
        line = lines[at]
        if at > start and line.indent < column:
            break
        if line.key is None or (at > start and (line.indent > column or line.is_item)):
            raise NotSimpleError
        at += 1
        value = nothing if line.value is None else scalar(line.value)
        follows = lines[at] if at < len(lines) else None
        if follows is not None and (follows.indent > column or (follows.indent == column and follows.is_item)):
            if line.value is not None:
                raise NotSimpleError
            value, at = _block(lines, at, scalar, nothing)
        content[scalar(line.key)] = value
    return content, at


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
