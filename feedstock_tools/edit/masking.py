"""A `meta.yaml` as YAML of the same length, so that a YAML parser finds places in text that is a template.

Statements and comments of Jinja become spaces, expressions become letters. Lines keep their selectors, since those are
comments to YAML, so a key may occur several times, and both branches of an `if` occur.
"""

from __future__ import annotations

import re

_MACRO = re.compile(r"\{%-?\s*macro\b.*?\bendmacro\s*-?%\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
#: A line that is nothing but an expression: what it renders to is not part of the structure that the text shows.
_ONLY_EXPRESSIONS = re.compile(r"^[ \t]*(?:\{\{(?:(?!\}\}).)*\}\}[ \t]*)+(?=#|\r?$)", re.MULTILINE)
#: A line with text after a statement: its indentation is known only after rendering.
_AFTER_STATEMENT = re.compile(r"^[ \t]*\{%(?:(?!%\}).)*%\}[ \t]*[^\s#{].*$", re.MULTILINE)
#: The value of a key that continues with lines of its own: what it renders to stands before them.
_BEFORE_LINES = re.compile(r"(?<=: )\{\{-.*?\}\}", re.DOTALL)
#: An expression as the value of a key, above list items with more indentation: what it renders to begins their list.
_BEFORE_ITEMS = re.compile(
    r"^([ \t]*(?:- )*)([\w-]+:[ \t]+)(\{\{(?:(?!\}\}).)*\}\})"
    r"([ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)([ \t]*)(?=- )",
    re.MULTILINE,
)
#: Statements in the first lines of a block of text: spaces there would count as its indentation.
_FIRST_IN_BLOCK = re.compile(
    r"(^[^#\n]*[:-] [|>][-+0-9]*[ \t]*(?:#.*)?\r?\n)((?:[ \t]+\{%(?:(?!%\}).)*%\}[ \t]*\r?\n)+)", re.MULTILINE
)
_NOT_A_BREAK = re.compile(r"[^\r\n]")


def masked(text: str) -> str:
    """The text with each template replaced by as many characters that are plain YAML."""
    text = _FIRST_IN_BLOCK.sub(lambda match: match[1] + _STATEMENT.sub(_letters, match[2]), text)
    for pattern in (_MACRO, _AFTER_STATEMENT, _STATEMENT, _ONLY_EXPRESSIONS, _BEFORE_LINES):
        text = pattern.sub(_blank, text)
    text = _BEFORE_ITEMS.sub(_without_value, text)
    return _EXPRESSION.sub(_letters, text)


def _blank(match: re.Match[str]) -> str:
    return _NOT_A_BREAK.sub(" ", match[0])


def _without_value(match: re.Match[str]) -> str:
    if len(match[5]) <= len(match[1]):
        return match[0]  # the items are of another key
    return f"{match[1]}{match[2]}{' ' * len(match[3])}{match[4]}{match[5]}"


def _letters(match: re.Match[str]) -> str:
    return "J" * len(match[0])
