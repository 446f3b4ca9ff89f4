"""Lines of a recipe: quoted if YAML requires it, with comments, and with their selectors in one column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from textwrap import wrap
from typing import Any

_WIDTH = 100
#: Text that cannot begin or end a plain scalar (YAML 1.1, section 9.1.3), or that conda-build reads as a selector.
_NOT_PLAIN = re.compile(r"""^$|^[\s\-?:,\[\]{}#&*!|>'"%@`]|: |:$|\s#|\s$|\]$|\n""")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, the selector that conditions it and the comment that explains it."""

    text: str
    selector: str | None = None
    why: str | None = None


def quoted(text: str) -> str:
    """The text as a YAML scalar, in quotes only if a plain one would be misread.

    >>> quoted("3.10"), quoted("numpy >=1.19"), quoted(">=1")
    ('"3.10"', 'numpy >=1.19', '">=1"')
    """
    if _NOT_PLAIN.search(text) or not _reads_as_text(text):
        return json.dumps(text, ensure_ascii=False)
    return text


@cache
def _reads_as_text(text: str) -> bool:
    """Whether YAML reads the plain scalar as a string, and not as a number, a date, a boolean or null."""
    from yaml import ScalarNode
    from yaml.resolver import Resolver

    resolver: Any = Resolver()
    return bool(resolver.resolve(ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")


def comment(text: str, indent: int) -> list[str]:
    """A comment, wrapped."""
    return [
        f"{' ' * indent}# {line}"
        for line in wrap(text, max(_WIDTH - indent, 40), break_long_words=False, break_on_hyphens=False)
    ]


def aligned(lines: Iterable[Line], indent: int) -> str:
    """The lines at an indentation, with aligned selectors; comments come above their line."""
    lines = tuple(lines)
    column = max((len(line.text) for line in lines if line.selector), default=0)
    written: list[str] = []
    for line in lines:
        if line.why:
            written += comment(line.why, indent)
        selector = f"{' ' * (column - len(line.text))}  # [{line.selector}]" if line.selector else ""
        written.append(f"{' ' * indent}{line.text}{selector}")
    return "\n".join(written)
