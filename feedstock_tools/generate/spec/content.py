"""The content of a spec as it stands in the file, which may have mistakes, and what its checks report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from feedstock_tools.conditions.grammar import ConditionError
from feedstock_tools.conditions.spec import parse
from feedstock_tools.conditions.tree import names_of
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.yaml_reading.nodes import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """An inconsistency at a location of the file."""

    location: Location
    message: str
    hint: str | None = None


#: `sm_86` (machine code), `compute_86` (PTX), and the variants of an architecture, `sm_90a`.
ARCHITECTURE = re.compile(r"(sm|compute)_\d{2,3}[af]?")


def is_automatic(content: dict[str, Any]) -> bool:
    """Whether something is added to what the spec says (its key `automatic`)."""
    return str(content.get("automatic", "true")).lower() not in ("false", "no", "off", "0", "f", "n")


def as_mapping(value: Any) -> dict[str, Any]:
    """The value, or an empty mapping in place of another kind."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value as a list: a single value as its one entry."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def outputs_of(content: dict[str, Any]) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Every output that is a mapping, and its location."""
    for at, output in enumerate(as_list(content.get("outputs"))):
        if isinstance(output, dict):
            yield ("outputs", at), output


def owners(content: dict[str, Any]) -> Iterator[tuple[Location, dict[str, Any]]]:
    """The build that runs once, and every output: what has a script and requirements."""
    yield ("build",), as_mapping(content.get("build"))
    yield from outputs_of(content)


def requirement_lists(content: dict[str, Any]) -> Iterator[tuple[Location, list[Any]]]:
    """Every list of requirements and its location."""
    for group, items in as_mapping(content.get("groups")).items():
        yield ("groups", group), as_list(items)
    for location, owner in owners(content):
        for section, items in as_mapping(owner.get("requirements")).items():
            if section in SECTIONS:
                yield (*location, "requirements", section), as_list(items)
        exports = owner.get("run_exports")
        by_strength = exports if isinstance(exports, dict) else {"": exports}
        for strength, items in by_strength.items():
            yield (*location, "run_exports", *([strength] if strength else [])), as_list(items)
        ignored = as_mapping(owner.get("ignore_run_exports"))
        for key in ("packages", "exporters"):
            yield (*location, "ignore_run_exports", key), as_list(ignored.get(key))
        yield (*location, "track_features"), as_list(owner.get("track_features"))
        yield (*location, "test", "requires"), as_list(as_mapping(owner.get("test")).get("requires"))


def entries(content: dict[str, Any]) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Every entry of a list of requirements as a mapping, and its location."""
    for location, items in requirement_lists(content):
        for at, item in enumerate(items):
            yield (*location, at), item if isinstance(item, dict) else {"package": item}


def names_cuda(condition: Any) -> bool:
    """Whether a condition, as text, tells GPU builds from others."""
    try:
        return isinstance(condition, str) and bool(names_of(parse(condition)) & {"cuda", "cpu"})
    except ConditionError:
        return False


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
