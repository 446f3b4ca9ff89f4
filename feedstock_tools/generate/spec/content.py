"""The content of a spec as it stands in the file, which may have mistakes, and what its checks report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from feedstock_tools.conditions.spec import ConditionError, parse
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


#: A placeholder: a name in single braces, which is the group; `${NAME}` belongs to the shell.
PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")
#: What both recipe formats would read as Jinja.
_JINJA = re.compile(r"\{\{\s*(?P<name>\w+)?|\}\}|\{[%#]|[%#]\}")
#: conda_build/metadata.py, sel_pat, as far as a quoted string can still match it.
_SELECTOR = re.compile(r"\[[^\[\]]+\][^()]*$")
#: Some of these end a line in YAML but not in an editor.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def fill(text: str, value: Callable[[str], str]) -> str:
    """The string with each placeholder replaced by `value(name)`."""
    return PLACEHOLDER.sub(lambda match: value(match[1]), text)


def text_mistake(text: str) -> tuple[str, str] | None:
    """What a recipe would read as Jinja or as a selector in a string, and what to do; None if it is right."""
    if _CONTROL.search(text):
        return "the string has a control character", "Remove it."
    if jinja := _JINJA.search(text):
        name = jinja["name"]
        hint = f"Write {{{name}}}: the spec is the same for both formats." if name else "Move it into a script."
        return f"'{jinja.group().strip()}' would be read as Jinja", hint
    if any(_SELECTOR.search(line.partition("#")[2]) for line in text.splitlines()):
        return "conda-build reads brackets after a '#' as a selector", "Use `when:`, or rephrase it."
    return None


def placeholder_mistake(text: str, allowed: tuple[str, ...]) -> tuple[str, str] | None:
    """The first placeholder of a string that is not among the allowed ones, and the nearest; None if it is right."""
    for name in PLACEHOLDER.findall(text):
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1)
            known_names = ", ".join(f"{{{word}}}" for word in allowed)
            hint = f"Did you mean '{{{near[0]}}}'?" if near else f"Known placeholders: {known_names}."
            return f"'{{{name}}}' is not filled in here", hint
    return None
