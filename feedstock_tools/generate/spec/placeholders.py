"""`{version}` in the strings of a spec, filled in with the syntax of each recipe format.

A placeholder is a name in single braces; `${NAME}` belongs to the shell. Both formats read double braces and the like
as Jinja, and conda-build reads brackets at the end of a line as a selector, so a spec must not contain them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

#: A placeholder, with its name as the group.
PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")
_JINJA = re.compile(r"\{\{\s*(?P<name>\w+)?|\}\}|\{[%#]|[%#]\}")
#: conda_build/metadata.py, sel_pat, as far as a quoted string can still match it.
_SELECTOR = re.compile(r"\[[^\[\]]+\][^()]*$")
#: Some of these end a line in YAML but not in an editor.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


class PlaceholderError(ValueError):
    """A placeholder that cannot be filled in, or a string that a recipe would misread; `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def names_in(text: str) -> tuple[str, ...]:
    """The placeholders of a string.

    >>> names_in("https://example.org/v{version}.tar.gz")
    ('version',)
    """
    return tuple(match[1] for match in PLACEHOLDER.finditer(text))


def fill(text: str, value: Callable[[str], str]) -> str:
    """The string with each placeholder replaced by `value(name)`."""
    return PLACEHOLDER.sub(lambda match: value(match[1]), text)


def check_text(text: str) -> None:
    """Refuse strings that a recipe would read as Jinja or as a selector.

    Raises:
        PlaceholderError: with a hint on what to write instead.
    """
    if _CONTROL.search(text):
        raise PlaceholderError("the string has a control character", "Remove it.")
    jinja = _JINJA.search(text)
    if jinja:
        name = jinja["name"]
        hint = f"Write {{{name}}}: the spec is the same for both formats." if name else "Move it into a script."
        raise PlaceholderError(f"'{jinja.group().strip()}' would be read as Jinja", hint)
    if any(_SELECTOR.search(line.partition("#")[2]) for line in text.splitlines()):
        raise PlaceholderError("conda-build reads brackets after a '#' as a selector", "Use `when:`, or rephrase it.")


def check_names(text: str, allowed: tuple[str, ...]) -> None:
    """Refuse placeholders other than `allowed`.

    Raises:
        PlaceholderError: with the nearest known name.
    """
    for name in names_in(text):
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1)
            known_names = ", ".join(f"{{{word}}}" for word in allowed)
            hint = f"Did you mean '{{{near[0]}}}'?" if near else f"Known placeholders: {known_names}."
            raise PlaceholderError(f"'{{{name}}}' is not filled in here", hint)
