"""Conditions of a `recipe.yaml`: texts that hold together, as a selector and the blocks around its line do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jinja2 import nodes

from feedstock_tools.to_v1.template.expressions import UntranslatableError, parsed
from feedstock_tools.to_v1.template.names import Names
from feedstock_tools.to_v1.template.writing import rewritten, translated

#: Conditions that all hold; an empty one always does.
When = tuple[str, ...]
#: A condition that never holds.
NEVER: When = ("false",)
_OPPOSITES = {"win": "unix", "unix": "win"}
_COMPARISONS = {" == ": " != ", " != ": " == "}


def literals(expression: str, names: Names, own: frozenset[str] = frozenset(), *, selector: bool = False) -> When:
    """An expression as conditions that hold together, without those that always do.

    Raises:
        UntranslatableError: it cannot be written for rattler-build.

    >>> literals("win and x != 'a'", Names(always=frozenset({"x"})), selector=True)
    ('win', 'x != "a"')
    """
    texts = [translated(expression, names, own, selector=selector)]
    return simplified(part for text in texts for part in _split(text))


def _split(text: str) -> Iterable[str]:
    node = parsed(text)
    if isinstance(node, nodes.And):
        for side in (node.left, node.right):
            yield from _split(rewritten(side))
    else:
        yield text


def simplified(parts: Iterable[str]) -> When:
    """Each condition once; `NEVER` if they cannot all hold."""
    kept: list[str] = []
    for part in parts:
        value = truth(part)
        if value is False:
            return NEVER
        if value is None and part not in kept:
            kept.append(part)
    if any(_complements(first, second) for first in kept for second in kept):
        return NEVER
    return tuple(kept)


def truth(text: str) -> bool | None:
    """The value of a condition of literals alone; None if it depends on something."""
    if text in {"true", "false"}:
        return text == "true"
    try:
        node = parsed(text)
    except UntranslatableError:
        return None
    return _truth(node)


def _truth(node: nodes.Expr) -> bool | None:
    match node:
        case nodes.Const():
            return bool(node.value)
        case nodes.Not():
            inner = _truth(node.node)
            return None if inner is None else not inner
        case nodes.And() | nodes.Or():
            sides = (_truth(node.left), _truth(node.right))
            decisive = isinstance(node, nodes.Or)
            return decisive if decisive in sides else None if None in sides else not decisive
        case nodes.Compare() if len(node.ops) == 1 and isinstance(node.expr, nodes.Const):
            right = node.ops[0].expr
            if isinstance(right, nodes.Const) and node.ops[0].op in {"eq", "ne"}:
                return bool((node.expr.value == right.value) == (node.ops[0].op == "eq"))
            if isinstance(right, nodes.Tuple | nodes.List) and all(
                isinstance(item, nodes.Const) for item in right.items
            ):
                values = [item.value for item in right.items if isinstance(item, nodes.Const)]
                if node.ops[0].op in {"in", "notin"}:
                    return bool((node.expr.value in values) == (node.ops[0].op == "in"))
    return None


def negated(when: When) -> When:
    """Conditions that hold where `when` does not.

    >>> negated(("win",)), negated(('x == "a"',)), negated(("win", "x"))
    (('not win',), ('x != "a"',), ('not (win and x)',))
    """
    if not when:
        return NEVER
    if when == NEVER:
        return ()
    if len(when) > 1:
        return (f"not ({' and '.join(_bracketed(part) for part in when)})",)
    return (_opposite(when[0]),)


def _opposite(text: str) -> str:
    if text.startswith("not ") and _binds_tightly(text.removeprefix("not ")):
        inner = text.removeprefix("not ")
        return inner[1:-1] if inner.startswith("(") and _is_wrapped(inner) else inner
    node = parsed(text)
    if isinstance(node, nodes.Compare) and len(node.ops) == 1:
        for operator, other in _COMPARISONS.items():
            if text.count(operator) == 1:
                return text.replace(operator, other)
    if isinstance(node, nodes.Test) and text.endswith((" is defined", " is undefined")):
        return (
            text.replace(" is undefined", " is\0")
            .replace(" is defined", " is undefined")
            .replace(" is\0", " is defined")
        )
    return f"not {text}" if _binds_tightly(text) else f"not ({text})"


def _binds_tightly(text: str) -> bool:
    """Whether a text binds at least as strongly as `not`."""
    return not isinstance(parsed(text), nodes.And | nodes.Or | nodes.CondExpr)


def _is_wrapped(text: str) -> bool:
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and index < len(text) - 1:
            return False
    return text.endswith(")")


def _bracketed(text: str) -> str:
    return f"({text})" if isinstance(parsed(text), nodes.Or | nodes.CondExpr) else text


def all_of(when: When) -> str:
    """Conditions as one expression.

    >>> all_of(("win or osx", "x"))
    '(win or osx) and x'
    """
    return " and ".join(_bracketed(part) if len(when) > 1 else part for part in when)


def without(when: When, known: When) -> When:
    """The conditions that are not among the `known` ones, which hold already."""
    return tuple(part for part in when if part not in known)


def _complements(first: str, second: str) -> bool:
    return _OPPOSITES.get(first) == second or _opposite(first) == second


def are_exhaustive(first: When, second: When) -> bool:
    """Whether exactly one of two conditions always holds."""
    if len(first) == 1 == len(second):
        return _complements(first[0], second[0])
    return bool(first and second) and (negated(first) == second or negated(second) == first)


def exclude(first: When, second: When) -> bool:
    """Whether two conditions never hold together, as far as their texts tell."""
    systems = {"linux", "osx", "win"}
    pairs = ((left, right) for left in first for right in second)
    return any(_complements(left, right) or (left != right and {left, right} <= systems) for left, right in pairs)


def joined(*groups: Sequence[str]) -> When:
    """Conditions that all hold."""
    return simplified(part for group in groups for part in group)
