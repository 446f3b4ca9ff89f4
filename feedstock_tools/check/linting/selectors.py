"""Rules about selectors, and the conditions of a `recipe.yaml`: those that never hold, or in no job."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from feedstock_tools.check.linting.conditions import PLATFORM_NAMES, names_of, never_holds, parsed, truth
from feedstock_tools.check.linting.subject import Mistaken, Subject
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.certain_values import UndecidedError
from feedstock_tools.recipe.v1.expressions import Scope
from feedstock_tools.recipe.v1.expressions import truth as truth_v1
from feedstock_tools.recipe.written.document import Document, Part, selector_in
from feedstock_tools.recipe.written.owners import requirement_lists
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import evaluate

#: Lines that skip are not meant to hold.
_SKIP = re.compile(r"\s*(?:-\s*)?skip\s*:")
#: Names that follow from Python's version, and that from NumPy's, in selectors.
_OF_PYTHON, _OF_NUMPY = re.compile(r"py(?:\d*|[23]k)"), "np"
#: Names that neither a variant nor a platform determines.
_OTHERS = frozenset({"os", "environ", "nomkl", "pl", "lua", "luajit", "context", "env"})
#: Keys that say where a job runs and uploads; feedstocks beside conda-forge have other values.
_OF_JOBS = frozenset({"channel_sources", "channel_targets", "docker_image", "github_actions_labels"})
Row = tuple[Platform, Mapping[str, str]]


def dead_selectors(subject: Subject) -> Iterator[Mistaken]:
    """Selectors that can never be true, in recipe and variant files, and those of the recipe that hold in no job."""
    names = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")
    own = [document for name in names if (document := subject.draft.file(name)) is not None]
    removable = {
        subject.recipe.line_start(item.start)
        for list_ in requirement_lists(subject.recipe)
        for item in dead_items(subject.recipe, list_)
    }
    keys = frozenset(entry.key for document in own if document.root for entry in document.root.entries)
    for document in (subject.recipe, *own):
        for at, condition, skips in _conditions(document):
            v1 = not document.has_templates
            if never_holds(condition, v1=v1):
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
    dead = [item for item in list_.items if (own := recipe.selector_of(item)) and never_holds(own, v1=False)]
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
    tree = parsed(condition)
    if tree is None or not subject.rows or names_of(tree) <= PLATFORM_NAMES:
        return True
    configured = frozenset(key for _, values in subject.rows for key in values)
    unknown = PLATFORM_NAMES | _OTHERS | _OF_JOBS | (keys - configured)
    wanted = names_of(tree) | {"python", "numpy"}
    different: dict[tuple[Any, ...], Row] = {}
    for platform, values in subject.rows:
        seen = tuple((name, values.get(name)) for name in sorted(wanted & configured))
        different.setdefault((platform if v1 else None, seen), (platform, values))
    look = _truth_in_recipe_yaml if v1 else _truth_in_meta_yaml
    return any(truth(tree, partial(look, row, unknown)) is not False for row in different.values())


def _holds_at_first(condition: str) -> bool:
    """Whether a selector holds when conda-build first reads a recipe, before it knows of variants: for a default."""
    try:
        return evaluate(condition, Namespace("linux-64", "linux-64", {}, {}, CondaBuildRules()))
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError):
        return True


def _truth_in_meta_yaml(row: Row, unknown: frozenset[str], part: ast.expr) -> bool | None:
    platform, values = row
    names = names_of(part)
    if names & unknown or any(not _is_determined(name, values) for name in names):
        return None
    try:
        return evaluate(ast.unparse(part), Namespace(platform.subdir, platform.subdir, values, {}, CondaBuildRules()))
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError):
        return None


def _is_determined(name: str, values: Mapping[str, str]) -> bool:
    """Whether a job determines a name: by its values, or because no variable has that name, which is false then."""
    if _OF_PYTHON.fullmatch(name):
        return "python" in values
    if name == _OF_NUMPY:
        return "numpy" in values
    return name.islower() or name in values


def _truth_in_recipe_yaml(row: Row, unknown: frozenset[str], part: ast.expr) -> bool | None:
    platform, values = row
    names = names_of(part)
    if names & unknown or not names <= values.keys():
        return None
    try:
        return truth_v1(ast.unparse(part), Scope(platform, {}, values))
    except UndecidedError:
        return None
