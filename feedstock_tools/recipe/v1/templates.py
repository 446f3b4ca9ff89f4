"""Limits on the templates of a `recipe.yaml`, which the engine would expand until the process dies.

The engine limits neither the result of a template (`'a' * 10 ** 10`) nor its nesting. An upper bound for each result is
computed before the engine sees it: the characters of all names and strings in it, times the numbers that it
multiplies with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError

__all__ = ["check_templates"]

_TEMPLATE = re.compile(r"\$\{\{(.*?)(?:\}\}|\Z)", re.DOTALL)
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*|\d[\d_]*(?:\.\d+)?|\*\*|[^\s\w]")
_NAME = re.compile(r"[A-Za-z_]")
_CONDITIONS = frozenset({"if", "skip"})
_GROWING = frozenset({"replace", "join", "format", "indent", "center", "tojson", "pprint"})
#: Far above any template of conda-forge: the characters of a template, and of its result.
_LONGEST = 2_000
_LARGEST = 1_000_000
#: The size of a name that the recipe does not set: a value of a variant.
_VALUE = 100


def check_templates(content: Any, path: Path) -> None:
    """Refuse templates that are too long or whose result may be too large; `content` is the parsed recipe.

    Raises:
        InputError: naming the template.
    """
    if not isinstance(content, Mapping):
        return
    sizes: dict[str, int] = {}
    context = content.get("context")
    for name, value in context.items() if isinstance(context, Mapping) else ():
        sizes[str(name)] = sum(_size(text, path, sizes) for text in _texts(value))
    for key, part in content.items():
        if key != "context":
            for text in _texts(part, key in _CONDITIONS):
                _size(text, path, sizes)


def _texts(node: Any, condition: bool = False) -> Iterator[str]:
    """All strings in a part of a recipe; conditions, which are templates without marks, with marks."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _texts(value, key in _CONDITIONS)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, condition)
    elif isinstance(node, str):
        yield f"${{{{{node}}}}}" if condition and "${{" not in node else node


def _size(text: str, path: Path, sizes: Mapping[str, int]) -> int:
    """An upper bound for the characters that a text renders to."""
    if "${{" not in text and "{%" not in text:
        return len(text)
    total = len(text)
    for template in _TEMPLATE.findall(text):
        if len(template) > _LONGEST:
            raise InputError(f"a template is longer than {_LONGEST} characters: {template[:60]}…", path=path)
        names, texts, growth = _parts(template)
        size = texts + sum(sizes.get(name, _VALUE) for name in names)
        total += size * (growth or (1 + texts if len(names) == 1 else size))
    if total > _LARGEST or "{%" in text:
        raise InputError(f"the result of a template may be too large: {text[:60]}…", path=path)
    return total


@lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[tuple[str, ...], int, int]:
    """The names in a template, the characters of its strings, and the factor of its multiplications (0: with one
    another)."""
    tokens = _TOKEN.findall(template)
    texts = sum(len(token) for token in tokens if token[0] in "'\"")
    words = [(before, token) for before, token in zip(["", *tokens], tokens, strict=False) if _NAME.match(token)]
    names = tuple(token for before, token in words if before not in ("|", "."))
    if "**" in tokens:
        return names, _LARGEST, 2
    if "*" not in tokens:
        return names, texts, 0 if _GROWING.intersection(word for _, word in words) else 1
    growth = 1
    for token in tokens:
        if token[0].isdigit():
            growth *= max(1, int(token.replace("_", "").split(".")[0]))
    return names, texts, growth
