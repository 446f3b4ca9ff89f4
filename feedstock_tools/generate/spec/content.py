"""The content of a spec as it stands in the file, which may have mistakes, and what its checks report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from feedstock_tools.conditions.grammar import ConditionError
from feedstock_tools.conditions.spec import parse
from feedstock_tools.conditions.tree import names_of
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.yaml_reading.positions import Location


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
