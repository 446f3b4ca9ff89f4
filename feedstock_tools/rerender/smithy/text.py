"""Blocks of lines in a YAML file that is changed in place, so that the rest keeps every byte."""

from __future__ import annotations

import re
from collections.abc import Sequence


def lines_of(text: str) -> list[str]:
    """The lines with their line endings; only a line feed ends one, as in YAML and in Git."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def newline_of(lines: Sequence[str]) -> str:
    """The line ending of a file."""
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


def find_block(lines: Sequence[str], key: str, within: range) -> range | None:
    """The first line that is `key` (its indentation and colon included) without a value, and the lines indented below
    it.

    The search goes over the lines `within`, up to the first that is indented less than the key.

    >>> find_block(["a:", "  b:", "    c: 1", "  d: 2"], "  b:", range(1, 4))
    range(1, 3)
    """
    depth = _indentation(key)
    for number in within:
        line = lines[number]
        if line.startswith(key) and line[len(key) :].strip() in ("", "{}", "[]"):
            return range(number, _end(lines, number + 1, within.stop, depth))
        if _says_something(line) and _indentation(line) < depth:
            return None
    return None


def _end(lines: Sequence[str], first: int, stop: int, depth: int) -> int:
    end = first
    for number in range(first, stop):
        if _says_something(lines[number]):
            if _indentation(lines[number]) <= depth:
                break
            end = number + 1
    return end


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def split_entries(lines: Sequence[str], first_line: re.Pattern[str]) -> dict[str, str]:
    """Split a list or mapping into its entries: the group `name` of each entry's first line, mapped to the entry's
    text."""
    entries: dict[str, str] = {}
    name: str | None = None
    for line in lines:
        begun = first_line.match(line.rstrip("\r\n"))
        if begun:
            name = begun["name"].strip("'\"")
            while name in entries:  # a duplicate name is kept twice, so that the second one is reported
                name += "'"
            entries[name] = ""
        if name is not None:
            entries[name] += line
    return entries


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
