"""The YAML that recipes and variant files are written in: blocks of keys, lists and simple values, a line each.

PyYAML reads it at a cost for each value; here every different line is looked at once. What is written otherwise, or
might mean something else than it seems to, is left to PyYAML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["NotSimpleError", "parse_block"]

#: A value that means just what it says: nothing that YAML takes for a mark, comment or key in it.
_PLAIN = r"[A-Za-z0-9_./](?:[ !\"$-9;-~]|:(?=[!-~]))*?"
#: The same, or in quotes, with nothing in them that is written otherwise than it is meant.
_SCALAR = rf"{_PLAIN}|'[ -&(-~]*'|\"[ !#-\[\]-~]*\""
_LINE = re.compile(rf"([ ]*)(-[ ]+)?(?:([A-Za-z_][\w.-]*):(?:[ ]+({_SCALAR}))?|({_SCALAR}))[ ]*", re.ASCII)
#: Deeper blocks are left to PyYAML, and longer lines.
_DEEPEST = 60
_LONGEST_LINE = 1_000

#: Gives what a value stands for, with the quotes that it was written in.
Scalar = Callable[[str], Any]


class NotSimpleError(Exception):
    """The text is more than blocks of simple values, or no YAML at all."""


class _Line(NamedTuple):
    """`indent` is the column where it begins, `column` the one behind the mark of an item of a list."""

    indent: int
    column: int
    key: str | None
    value: str | None

    @property
    def is_item(self) -> bool:
        return self.column > self.indent


@lru_cache(maxsize=8192)
def _line(text: str) -> _Line | None:
    """A line taken apart; None for a blank one.

    Raises:
        NotSimpleError: there is something else in it.
    """
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
    """What a text of blocks stands for; equal values may be the same object.

    Args:
        scalar: reads a value or key.
        nothing: stands behind a key without a value.

    Raises:
        NotSimpleError: it is to be read by PyYAML.
    """
    lines = [line for line in map(_line, text.split("\n")) if line is not None]
    if not lines:
        raise NotSimpleError
    content, end = _block(lines, 0, scalar, nothing)
    if end < len(lines):
        raise NotSimpleError
    return content


def _block(lines: Sequence[_Line], at: int, scalar: Scalar, nothing: Any) -> tuple[Any, int]:
    """The mapping or list that begins at a line, and the number of the line behind it."""
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
    """As `_block`, of a mapping whose keys stand in a column; the first may be behind the mark of an item."""
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
