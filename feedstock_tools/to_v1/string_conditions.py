"""Conditions on platforms in build strings, moved to the context of the recipe.

rattler-build evaluates `osx` and the like in a build string for the machine that renders, elsewhere for the target.
"""

from __future__ import annotations

import re

from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar, Value
from feedstock_tools.to_v1.template.names import PLATFORMS

_WORDS = PLATFORMS - {"target_platform", "build_platform"}
_TEMPLATE = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_TOKEN = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\b\w+\b")


def with_hoisted_platforms(keys: list[Key]) -> tuple[list[Key], tuple[Key, ...]]:
    """The keys of a recipe with other names for platforms in build strings, and the entries of the context for these.

    >>> build = Dict((Key("string", Scalar("${{ 'a' if osx else 'b' }}")),))
    >>> [section], [entry] = with_hoisted_platforms([Key("build", build)])
    >>> section.value.keys[0].value.text, entry.name, entry.value.text
    ("${{ 'a' if on_osx else 'b' }}", 'on_osx', '${{ osx }}')
    """
    words: dict[str, None] = {}
    hoisted = [Key(key.name, _walked(key.value, key.name, words), key.comments, key.remark) for key in keys]
    return hoisted, tuple(Key(f"on_{word}", Scalar(f"${{{{ {word} }}}}")) for word in words)


def _walked(value: Value, name: str, words: dict[str, None]) -> Value:
    match value:
        case Dict():
            inner = (
                Key(key.name, _string(key.value, words), key.comments, key.remark)
                if name == "build" and key.name == "string" and isinstance(key.value, Scalar)
                else Key(key.name, _walked(key.value, key.name, words), key.comments, key.remark)
                for key in value.keys
            )
            return Dict(tuple(inner))
        case List() if name == "outputs":
            items = (
                Item(_walked(item.value, "", words), item.when, item.comments, item.remark) for item in value.items
            )
            return List(tuple(items), value.spaced)
    return value


def _string(value: Scalar, words: dict[str, None]) -> Scalar:
    return Scalar(_TEMPLATE.sub(lambda match: _TOKEN.sub(lambda token: _named(token[0], words), match[0]), value.text))


def _named(token: str, words: dict[str, None]) -> str:
    if token not in _WORDS:
        return token
    words[token] = None
    return f"on_{token}"
