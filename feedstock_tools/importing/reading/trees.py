"""What a recipe says in one setting, the same for both formats: texts with marks, lists, and the remaining keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECTIONS = ("build", "host", "run", "run_constrained")


@dataclass(frozen=True, slots=True)
class ScriptTree:
    """A script: a file, or commands, and the variables that it sees; `passed` are those that come from the machine."""

    file: str | None = None
    commands: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputTree:
    """An output. `tests` are its imports, commands and the like; the `more…` hold keys without a place elsewhere."""

    name: str
    version: str
    number: int | None
    string: str | None
    noarch: str | None
    skip: bool
    script: ScriptTree
    files: tuple[str, ...]
    excluded: tuple[str, ...]
    requirements: Mapping[str, tuple[str, ...]]
    exports: Mapping[str, tuple[str, ...]]
    ignored: Mapping[str, tuple[str, ...]]
    features: tuple[str, ...]
    keys: Mapping[str, tuple[str, ...]]
    entry_points: tuple[str, ...]
    independent: bool
    tests: Mapping[str, tuple[str, ...]]
    about: Mapping[str, Any]
    more_build: Mapping[str, Any]
    more_test: Mapping[str, Any]
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecipeTree:
    """A recipe. `number` is its build number; `top` what runs before the outputs; `alone`: it has no outputs.
    `values` are the texts that it gives names to."""

    name: str
    version: str
    number: int
    skip: bool
    alone: bool
    sources: tuple[Mapping[str, Any], ...]
    top: OutputTree
    outputs: tuple[OutputTree, ...]
    about: Mapping[str, Any]
    extra: Mapping[str, Any]
    values: Mapping[str, str] = field(default_factory=dict)


def as_texts(value: Any) -> tuple[str, ...]:
    """A value as the texts of a list; a single one as its only entry."""
    if value is None or value == "":
        return ()
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(item).strip() for item in items if item is not None and str(item).strip())
