"""Conditions that never hold, or in no job: `[linux and win]` of a `meta.yaml`, `if: linux and win` of a `recipe.yaml`.

A part about something unknown may be true or false; only what is false whatever the unknown parts are is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any

from feedstock_tools.check.linting.subject import LintFinding, Subject
from feedstock_tools.conditions.recipes import parse
from feedstock_tools.conditions.tree import (
    Compare,
    Condition,
    Constant,
    Items,
    Leaf,
    Name,
    Operand,
    Scalar,
    compared,
    leaves,
    names_of,
    operands,
    truth,
)
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.recipe.v1.expressions import PLATFORM_WORDS, Scope
from feedstock_tools.recipe.v1.expressions import holds as holds_v1
from feedstock_tools.recipe.written.document import Document, Part, selector_in
from feedstock_tools.recipe.written.owners import requirement_lists
from feedstock_tools.rerender.configuration import NO_LOOP
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, holds

#: Lines that skip are not meant to hold.
_SKIP = re.compile(r"\s*(?:-\s*)?skip\s*:")
#: Names that follow from Python's version, and that from NumPy's, in selectors.
_OF_PYTHON, _OF_NUMPY = re.compile(r"py(?:\d*|[23]k)"), "np"
#: Names that neither a variant nor a platform determines.
_UNDETERMINED = frozenset({"os", "environ", "nomkl", "pl", "lua", "luajit", "context", "env"})
_Row = tuple[Platform, Mapping[str, str]]
#: Combinations of values of one condition; more are not tried.
_MOST_COMBINATIONS = 2_000
#: Names of a `meta.yaml`'s selectors that are numbers of a version: `py` is 312 for Python 3.12.
_NUMBERS = frozenset({"py", "np"})
_OF_VARIANTS = frozenset({"py", "np", "py2k", "py3k", "pl", "lua", "luajit", "os", "environ", "build_platform"})
#: A value that a condition does not name.
_OTHER = "\0"


def _platform(subdir: str) -> dict[str, Any]:
    """The names that a platform alone determines, with their values."""
    fixed = Namespace(subdir, subdir, {}, {}, CondaBuildRules()).fixed
    names = {name: value for name, value in fixed.items() if name not in _OF_VARIANTS and name[:2] != "py"}
    return {**names, "target_platform": subdir}


_PLATFORMS = tuple(_platform(subdir) for subdir in KNOWN_SUBDIRS)
#: The names that platforms determine, in both formats.
_PLATFORM_NAMES = frozenset(_PLATFORMS[0]) | set(PLATFORM_WORDS) | {"build_platform", "host_platform"}


def dead_selectors(subject: Subject) -> Iterator[LintFinding]:
    """Selectors that can never be true, in recipe and variant files, and those of the recipe that hold in no job."""
    names = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")
    own = [document for name in names if (document := subject.files.file(name)) is not None]
    removable = {
        subject.recipe.line_start(item.start)
        for list_ in requirement_lists(subject.recipe)
        for item in dead_items(subject.recipe, list_)
    }
    keys = frozenset(entry.key for document in own if document.root for entry in document.root.entries)
    for document in (subject.recipe, *own):
        for at, condition, skips in _conditions(document):
            v1 = not document.has_templates
            if _never_holds(condition, v1=v1):
                message = f"[{condition}] can never be true"
                fixable = document is subject.recipe and at in removable
                yield subject.finding(at, "dead-selector", message, document=document, fixable=fixable)
            elif document is subject.recipe and not skips and not _holds_somewhere(condition, subject, keys, v1=v1):
                if document.text.startswith("{%", at) and _holds_at_first(condition):
                    continue
                yield subject.finding(at, "dead-selector", f"[{condition}] holds in no job")


def dead_items(recipe: Document, list_: Part) -> list[Part]:
    """The items of a list that can go, since their selectors can never be true; none if no other would be left."""
    if not recipe.has_templates:
        return []
    dead = [item for item in list_.items if (own := recipe.selector_of(item)) and _never_holds(own, v1=False)]
    return dead if len(dead) < len(list_.items) else []


def _conditions(document: Document) -> Iterator[tuple[int, str, bool]]:
    """The conditions of a file: the character, the condition, and whether what it selects skips packages."""
    if document.has_templates:
        at = 0
        for line in document.text.splitlines(keepends=True):
            selector = "" if line.lstrip().startswith("#") else selector_in(line.rstrip("\r\n"))
            if selector:
                yield at, selector, _SKIP.match(line) is not None
            at += len(line)
    elif document.root is not None:
        yield from _branches(document.root)


def _branches(part: Part) -> Iterator[tuple[int, str, bool]]:
    members = part.members
    if {"if", "then"} <= members.keys():
        yield part.start, members["if"].text, False
    for entry in part.entries:
        if entry.key == "skip":
            skips = entry.value.items or (entry.value,)
            yield from ((skip.start, skip.text, True) for skip in skips if skip.kind == "scalar" and skip.text)
        yield from _branches(entry.value)
    for item in part.items:
        yield from _branches(item)


def _holds_somewhere(condition: str, subject: Subject, keys: frozenset[str], *, v1: bool) -> bool:
    """Whether a condition may hold in a job, apart from what it says of platforms, or says nothing else."""
    tree = _tree(condition, v1=v1)
    if tree is None or not subject.rows or names_of(tree) <= _PLATFORM_NAMES:
        return True
    configured = frozenset(key for _, values in subject.rows for key in values)
    unknown = _PLATFORM_NAMES | _UNDETERMINED | NO_LOOP | (keys - configured)
    wanted = names_of(tree) | {"python", "numpy"}
    different: dict[tuple[Any, ...], _Row] = {}
    for platform, values in subject.rows:
        seen = tuple((name, values.get(name)) for name in sorted(wanted & configured))
        different.setdefault((platform if v1 else None, seen), (platform, values))
    look = _truth_in_recipe_yaml if v1 else _truth_in_meta_yaml
    return any(truth(tree, partial(look, condition, row, unknown)) is not False for row in different.values())


def may_hold(condition: str, subject: Subject) -> bool:
    """Whether a condition of the recipe may hold in a job, or on a platform if there are no jobs to ask."""
    v1 = not subject.recipe.has_templates
    tree = _tree(condition, v1=v1)
    if tree is None or not subject.rows:
        return not _never_holds(condition, v1=v1)
    look = partial(_truth_in_recipe_yaml if v1 else _truth_in_meta_yaml, condition)
    return any(truth(tree, partial(look, row, _UNDETERMINED | NO_LOOP)) is not False for row in subject.rows)


def _holds_at_first(condition: str) -> bool:
    """Whether a selector holds when conda-build first reads a recipe, before it knows of variants: for a default."""
    return holds(condition, Namespace("linux-64", "linux-64", {}, {}, CondaBuildRules())) is not False


def _truth_in_meta_yaml(condition: str, row: _Row, unknown: frozenset[str], leaf: Leaf) -> bool | None:
    platform, values = row
    names = names_of(leaf)
    if names & unknown or any(not _is_determined(name, values) for name in names):
        return None
    namespace = Namespace(platform.subdir, platform.subdir, values, {}, CondaBuildRules())
    return holds(condition[slice(*leaf.span)], namespace)


def _is_determined(name: str, values: Mapping[str, str]) -> bool:
    """Whether a job determines a name: by its values, or because no variable has that name, which is false then."""
    if _OF_PYTHON.fullmatch(name):
        return "python" in values
    if name == _OF_NUMPY:
        return "numpy" in values
    return name.islower() or name in values


def _truth_in_recipe_yaml(condition: str, row: _Row, unknown: frozenset[str], leaf: Leaf) -> bool | None:
    platform, values = row
    names = names_of(leaf)
    if names & unknown or not names <= values.keys() | set(PLATFORM_WORDS):
        return None
    return holds_v1(condition[slice(*leaf.span)], Scope(platform, {}, values))


def _tree(condition: str, *, v1: bool) -> Condition | None:
    return parse(condition, "expression" if v1 else "selector")


@lru_cache(maxsize=8192)
def _never_holds(condition: str, *, v1: bool) -> bool:
    """Whether a condition is false on every platform that conda knows, whatever the variant.

    >>> _never_holds("linux and win", v1=False), _never_holds("linux and py > 39", v1=False)
    (True, False)
    """
    tree = _tree(condition, v1=v1)
    if tree is None:
        return False
    choices = _choices(tree, v1=v1)
    if prod(map(len, choices.values())) > _MOST_COMBINATIONS:
        return False
    return not any(truth(tree, partial(_plain_truth, names)) is not False for names in _assignments(choices))


def _assignments(choices: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for platform in _PLATFORMS:
        for values in product(*choices.values()):
            yield {**platform, **dict(zip(choices, values, strict=True))}


def _choices(tree: Condition, *, v1: bool) -> dict[str, tuple[Any, ...]]:
    """For each name that no platform determines, values of every kind that makes a difference to the condition."""
    constants = [value for leaf in leaves(tree) for part in operands(leaf) for value in _constants(part)]
    numbers = [int(value) for value in constants if isinstance(value, int | float) and abs(value) < 10**9]
    near = {number + step for number in numbers for step in (-1, 0, 1, 2)}
    texts: set[Any] = {"", _OTHER}
    for value in constants:
        if isinstance(value, str):
            texts |= {value, f"{value}{_OTHER}"}
    # A selector sees values that look like numbers or booleans as such, the new format as they are written.
    general = texts | near | {True, False} if v1 else {_typed(text) for text in texts} | near | {True, False}
    return {
        name: tuple(near | {27, 312}) if name in _NUMBERS and not v1 else tuple(general)
        for name in names_of(tree)
        if name not in _PLATFORMS[0] and name not in {"os", "environ"}
    }


def _constants(part: Operand | Leaf) -> tuple[Scalar, ...]:
    match part:
        case Constant(value):
            return (value,)
        case Items(values):
            return values
    return ()


def _typed(text: str) -> Any:
    return Namespace("linux-64", "linux-64", {"key": text}, {}, CondaBuildRules())["key"]


def _plain_truth(names: Mapping[str, Any], leaf: Leaf) -> bool | None:
    """The truth of a name or a comparison of it with constants; None for anything else."""
    if isinstance(leaf, Name):
        return bool(names[leaf.name]) if leaf.name in names else None
    if not isinstance(leaf, Compare) or (isinstance(leaf.left, Name) and isinstance(leaf.right, Name)):
        return None  # which values of one name the other has is unknown
    sides = [_value(part, names) for part in operands(leaf)]
    return None if None in sides else compared(sides[0][0], leaf.operator, sides[1][0])  # type: ignore[index]


def _value(part: Operand, names: Mapping[str, Any]) -> tuple[Any] | None:
    """The value of a name or of constants, in a tuple; None if it is unknown."""
    match part:
        case Constant(value):
            return (value,)
        case Items(values):
            return (values,)
        case Name(name) if name in names:
            return (names[name],)
    return None
