"""Lines of a recipe: quoted where YAML asks for it, commented, their selectors in one column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

__all__ = ["Line", "aligned", "comment", "quoted"]

_WIDTH = 100
#: Plain scalars that YAML reads as something else than the text, or not at all (YAML 1.1, section 9.1.4).
_NOT_PLAIN = re.compile(
    r"""^$|^[\s\-?:,\[\]{}#&*!|>'"%@`]|: |:$|\s\#|\s$|^(true|false|yes|no|on|off|null|~)$|^[-+.]?[0-9][0-9_.eE+:]*$|^=$""",
    re.IGNORECASE,
)
#: What YAML alone would take for a list item or a mapping key although the text goes on without a blank.
_HARMLESS_START = re.compile(r"^(-{1,2}[A-Za-z0-9]|:[^\s]|\?[^\s])")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, the selector that conditions it and the comment that explains it."""

    text: str
    selector: str | None = None
    why: str | None = None


def quoted(text: str) -> str:
    """The text as a YAML scalar, in quotes only where a plain one would be read as something else.

    >>> quoted("3.10"), quoted("numpy >=1.19"), quoted(">=1")
    ('"3.10"', 'numpy >=1.19', '">=1"')
    """
    if _NOT_PLAIN.search(text) and not (_HARMLESS_START.match(text) and ": " not in text and " #" not in text):
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if text.endswith("]") or "\n" in text else text


def comment(text: str, indent: int) -> list[str]:
    """A comment, wrapped."""
    return [f"{' ' * indent}# {line}" for line in wrap(text, max(_WIDTH - indent, 40), break_long_words=False, break_on_hyphens=False)]


def aligned(lines: Iterable[Line], indent: int) -> str:
    """The lines at an indentation, their selectors beginning in one column; comments stand above their line."""
    lines = tuple(lines)
    column = max((len(line.text) for line in lines if line.selector), default=0)
    written: list[str] = []
    for line in lines:
        if line.why:
            written += comment(line.why, indent)
        selector = f"{' ' * (column - len(line.text))}  # [{line.selector}]" if line.selector else ""
        written.append(f"{' ' * indent}{line.text}{selector}")
    return "\n".join(written)
