"""Whether a condition can be true: `[linux and win]` of a `meta.yaml`, `if: linux and win` of a `recipe.yaml`.

Conditions are evaluated with three values: a part about something unknown may be true or false, and only what is false
whatever the unknown parts are is reported.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from typing import Any

from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.recipe.v1.certain_values import PLATFORM_WORDS
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules

#: Longer conditions are not checked.
_LONGEST = 1_000
#: Combinations of values of one condition; more are not tried.
_MOST_COMBINATIONS = 2_000
#: Names of a `meta.yaml`'s selectors that are numbers of a version: `py` is 312 for Python 3.12.
_NUMBERS = frozenset({"py", "np"})
_OF_VARIANTS = frozenset({"py", "np", "py2k", "py3k", "pl", "lua", "luajit", "os", "environ", "build_platform"})
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
#: A value that a condition does not name.
_OTHER = "\0"


def _platform(subdir: str) -> dict[str, Any]:
    """The names that a platform alone determines, with their values."""
    fixed = Namespace(subdir, subdir, {}, {}, CondaBuildRules()).fixed
    names = {name: value for name, value in fixed.items() if name not in _OF_VARIANTS and name[:2] != "py"}
    return {**names, "target_platform": subdir}


_PLATFORMS = tuple(_platform(subdir) for subdir in KNOWN_SUBDIRS)
#: The names that platforms determine, in both formats.
PLATFORM_NAMES = frozenset(_PLATFORMS[0]) | set(PLATFORM_WORDS) | {"build_platform", "host_platform"}


@lru_cache(maxsize=8192)
def parsed(condition: str) -> ast.expr | None:
    """A condition as a tree; None if it is not an expression in the common part of both formats' languages.

    >>> parsed("linux and") is None
    True
    """
    if len(condition) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.parse(condition.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def names_of(tree: ast.AST) -> frozenset[str]:
    """The names that an expression reads, functions left out."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def truth(tree: ast.expr, leaf: Callable[[ast.expr], bool | None]) -> bool | None:
    """Whether an expression is true; None if that is unknown.

    Args:
        leaf: the same for its parts between `and`, `or` and `not`.
    """
    if isinstance(tree, ast.BoolOp):
        absorbing = isinstance(tree.op, ast.Or)
        values = [truth(value, leaf) for value in tree.values]
        if absorbing in values:
            return absorbing
        return None if None in values else not absorbing
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        value = truth(tree.operand, leaf)
        return None if value is None else not value
    return leaf(tree)


@lru_cache(maxsize=8192)
def never_holds(condition: str, *, v1: bool) -> bool:
    """Whether a condition is false on every platform that conda knows, whatever the variant.

    >>> never_holds("linux and win", v1=False), never_holds("linux and py > 39", v1=False)
    (True, False)
    """
    tree = parsed(condition)
    if tree is None:
        return False
    choices = _choices(tree, v1=v1)
    count = 1
    for values in choices.values():
        count *= len(values)
    if count > _MOST_COMBINATIONS:
        return False
    return not any(truth(tree, partial(_plain_truth, names)) is not False for names in _assignments(choices))


def _assignments(choices: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for platform in _PLATFORMS:
        for values in product(*choices.values()):
            yield {**platform, **dict(zip(choices, values, strict=True))}


def _choices(tree: ast.expr, *, v1: bool) -> dict[str, tuple[Any, ...]]:
    """For each name that no platform determines, values of every kind that makes a difference to the condition."""
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    numbers = [int(value) for value in constants if isinstance(value, int | float) and abs(value) < 10**9]
    near = {number + step for number in numbers for step in (-1, 0, 1, 2)}
    texts: set[Any] = {"", _OTHER}
    for value in constants:
        if isinstance(value, str):
            texts |= {value, f"{value}{_OTHER}"}
    # A selector sees values that look like numbers or booleans as such, the new format as they are written.
    general = texts | near | {True, False} if v1 else {typed for text in texts for typed in _typed(text)} | near
    return {
        name: tuple(near | {27, 312}) if name in _NUMBERS and not v1 else tuple(general)
        for name in names_of(tree)
        if name not in _PLATFORMS[0] and name not in {"os", "environ"}
    }


def _typed(text: Any) -> tuple[Any, ...]:
    value = Namespace("linux-64", "linux-64", {"key": str(text)}, {}, CondaBuildRules())["key"]
    return (value, True, False)


def _plain_truth(names: Mapping[str, Any], part: ast.expr) -> bool | None:
    """The truth of a name, a constant or a comparison of them; None for anything else."""
    if isinstance(part, ast.Compare):
        if sum(isinstance(item, ast.Name) for item in (part.left, *part.comparators)) > 1:
            return None  # which values of the one the other has is unknown
        values = [_value(item, names) for item in (part.left, *part.comparators)]
        if any(truth is None for truth in values):
            return None
        pairs = zip(values, values[1:], part.ops, strict=False)
        try:
            return all(_COMPARISONS[type(op)](left[0], right[0]) for left, right, op in pairs if left and right)
        except (KeyError, TypeError):
            return None
    value = _value(part, names)
    return None if value is None else bool(value[0])


def _value(item: ast.expr, names: Mapping[str, Any]) -> tuple[Any] | None:
    """The value of a name or of constants, in a tuple; None if it is unknown."""
    if isinstance(item, ast.Constant):
        return (item.value,)
    if isinstance(item, ast.Name) and item.id in names:
        return (names[item.id],)
    if isinstance(item, ast.Tuple | ast.List) and all(isinstance(each, ast.Constant) for each in item.elts):
        return ([each.value for each in item.elts if isinstance(each, ast.Constant)],)
    return None
