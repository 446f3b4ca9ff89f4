"""`{version}` in the texts of a spec, filled in by the words of each recipe format.

A placeholder is a name in single braces. `${NAME}` is left to the shell, and `{{` and `}}` stand for the braces themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

__all__ = ["PlaceholderError", "fill", "names_in"]

_PART = re.compile(r"(?P<jinja>\{\{ *(?P<inner>\w+) +\}\}|\{\{ +(?P<padded>\w+) *\}\})|\{\{|\}\}|(?<!\$)\{(?P<name>[A-Za-z_]\w*)\}")


class PlaceholderError(ValueError):
    """A placeholder that cannot be filled in; `hint` says what can."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def names_in(text: str) -> tuple[str, ...]:
    """The placeholders of a text.

    Raises:
        PlaceholderError: it uses Jinja's double braces.

    >>> names_in("https://example.org/v{version}.tar.gz")
    ('version',)
    """
    found: list[str] = []
    fill(text, lambda name: found.append(name) or "")
    return tuple(found)


def fill(text: str, value: Callable[[str], str]) -> str:
    """The text with each placeholder replaced by `value(name)`; errors as of `names_in`."""

    def replacement(match: re.Match[str]) -> str:
        if match["jinja"]:
            name = match["inner"] or match["padded"]
            raise PlaceholderError(f"'{match['jinja']}' is Jinja", f"Write {{{name}}}: the spec is the same for both formats.")
        return value(match["name"]) if match["name"] else match.group()[0]

    return _PART.sub(replacement, text)


def check_names(text: str, known: tuple[str, ...]) -> None:
    """Refuse placeholders other than `known`.

    Raises:
        PlaceholderError: with the nearest known name.
    """
    for name in names_in(text):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise PlaceholderError(
                f"'{{{name}}}' is not filled in here",
                f"Did you mean '{{{near[0]}}}'?" if near else f"Known are {', '.join(f'{{{word}}}' for word in known)}.",
            )
