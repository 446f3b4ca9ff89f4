"""Expressions of a `recipe.yaml`, evaluated as far as their value is certain to be the engine's.

A rerender asks of an expression which variables it reads and whether it is true; for this it need not call the engine
for each variant. Outside this small part of the language `UndecidedError` leaves it to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import takewhile
from typing import TypeAlias, cast

from jinja2 import Environment, TemplateSyntaxError, nodes

from feedstock_tools.conditions.tree import COMPARISONS
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.certain_values import (
    NOTHING,
    PLATFORM_WORDS,
    Term,
    UndecidedError,
    as_text,
    is_platform,
    matches,
    scalar,
    short_version,
    typed_value,
)
from feedstock_tools.recipe.written.sites import ContextValue

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
#: Functions and filters without side effects whose result is used but not looked into.
_FUNCTIONS = frozenset({"compiler", "stdlib", "cdt", "pin_subpackage", "pin_compatible"})
_FILTERS = frozenset({"int", "split", "replace", "join", "first", "last", "list", "slice", "lower", "upper", "trim"})
#: Jinja's names of comparisons.
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
_DEEPEST = 40
#: The value of each variable and what was read for it; None: it has no certain value.
Evaluated: TypeAlias = dict[str, tuple[Hashable, frozenset[Hashable]] | None]


@dataclass
class Scope:
    """What an expression can read, and what it did read.

    Attributes:
        context: the recipe's own variables; each sees those before it, and then the variant. None for a list.
        values: a variant: text by key.
        known: variables of the context that the expression sees; None: all.
        reads: the keys of `values` that were read, and terms of functions that read keys themselves.
        evaluated: the variables of the context that have been evaluated for these values, each with what was read for
            it; None for one without a certain value. Scopes with the same values may share it.
    """

    platform: Platform
    context: Mapping[str, ContextValue | None]
    values: Mapping[str, str]
    known: frozenset[str] | None = None
    reads: set[Hashable] = field(default_factory=set)
    depth: int = 0
    evaluated: Evaluated = field(default_factory=dict)

    def sees(self, name: str) -> bool:
        """Whether a name is that of a variable of the context."""
        return name in self.context and (self.known is None or name in self.known)

    def of(self, name: str) -> Hashable:
        """The value of a variable.

        Raises:
            UndecidedError: it has none that is certain.
        """
        if self.sees(name):
            return self._of_context(name)
        if name in self.values:
            self.reads.add(name)
            return typed_value(self.values[name])
        if name == "hash":
            return Term(("hash",))
        if name in PLATFORM_WORDS:
            return is_platform(name, self.platform)
        raise UndecidedError

    def _of_context(self, name: str) -> Hashable:
        if name not in self.evaluated:
            before = frozenset(takewhile(lambda other: other != name, self.context))
            inner = replace(self, known=before, depth=self.depth + 1, reads=set())
            try:
                self.evaluated[name] = inner._written(self.context[name]), frozenset(inner.reads)
            except UndecidedError:
                self.evaluated[name] = None
        evaluated = self.evaluated[name]
        if evaluated is None:
            raise UndecidedError
        value, reads = evaluated
        self.reads |= reads
        return value

    def _written(self, written: ContextValue | None) -> Hashable:
        """The value of a variable of the context, in the scope of its text."""
        if written is None or self.depth > _DEEPEST + 1:
            raise UndecidedError
        text, plain = written.text, written.plain
        if "{" not in text:
            return scalar(text) if plain else text
        parts = pieces(text, self)
        if len(parts) == 1:
            return parts[0] if plain else as_text(parts[0])
        if not all(type(piece) is str for piece in parts):
            return Term(parts)
        joined = "".join(str(piece) for piece in parts)
        return scalar(joined) if plain else joined


def pieces(text: str, scope: Scope) -> tuple[Hashable, ...]:
    """The parts of a text: its templates' values, and the texts between them.

    Raises:
        UndecidedError: a template has no certain value, or the text has statements.
    """
    if "{%" in text or "{#" in text:
        raise UndecidedError
    parts = _TEMPLATE.split(text)
    values: list[Hashable] = []
    for number, part in enumerate(parts):
        if number % 2:
            values.append(value_of(part, scope))
        elif part:
            values.append(part)
    return tuple(values)


def truth(text: str, scope: Scope) -> bool:
    """Whether a condition holds; it may be written with the marks of a template.

    Raises:
        UndecidedError: that is not certain.
    """
    inner = _TEMPLATE.fullmatch(text.strip())
    if inner is None and "{" in text:
        raise UndecidedError
    return _truth_of(_tree(inner[1] if inner else text), scope)


def holds(text: str, scope: Scope) -> bool | None:
    """As `truth`; None if that is not certain."""
    try:
        return truth(text, scope)
    except UndecidedError:
        return None


def value_of(expression: str, scope: Scope) -> Hashable:
    """The value of an expression, as text, number, truth value or `Term`.

    Raises:
        UndecidedError: it has no certain value.
    """
    return _value(_tree(expression), scope)


@cache
def _environment() -> Environment:
    return Environment(autoescape=True)


@lru_cache(maxsize=4096)
def _tree(expression: str) -> nodes.Expr:
    try:
        parsed = _environment().parse("{{ " + expression + " }}").body
    except (TemplateSyntaxError, RecursionError):
        raise UndecidedError from None
    if len(parsed) != 1 or not isinstance(parsed[0], nodes.Output) or len(parsed[0].nodes) != 1:
        raise UndecidedError
    return parsed[0].nodes[0]


def _truth_of(node: nodes.Node, scope: Scope) -> bool:
    match node:
        case nodes.And():
            return _truth_of(node.left, scope) and _truth_of(node.right, scope)
        case nodes.Or():
            return _truth_of(node.left, scope) or _truth_of(node.right, scope)
        case nodes.Not():
            return not _truth_of(node.node, scope)
    value = _value(node, scope)
    if isinstance(value, str | bool | int):
        return bool(value)
    raise UndecidedError


def _value(node: nodes.Node, scope: Scope) -> Hashable:
    match node:
        case nodes.Const() if isinstance(node.value, str | bool | int):
            return node.value
        case nodes.TemplateData():
            return str(node.data)
        case nodes.Name():
            return scope.of(node.name)
        case nodes.CondExpr():
            if _truth_of(node.test, scope):
                return _value(node.expr1, scope)
            return NOTHING if node.expr2 is None else _value(node.expr2, scope)
        case nodes.And() | nodes.Or():
            return _truth_of_truths(node, scope)
        case nodes.Not():
            return not _truth_of(node.node, scope)
        case nodes.Compare():
            return _compared(node, scope)
        case nodes.Test(name="defined") if isinstance(node.node, nodes.Name):
            return _is_defined(node.node.name, scope)
        case nodes.Filter():
            return _filtered(node, scope)
        case nodes.Call():
            return _called(node, scope)
        case nodes.Add() | nodes.Concat() | nodes.Sub() | nodes.Mul():
            return _combined(node, scope)
        case nodes.Tuple() | nodes.List():
            return tuple(_value(item, scope) for item in node.items)
        case nodes.Getitem():
            return _item(node, scope)
        case nodes.Slice():
            bounds = (node.start, node.stop, node.step)
            return Term(("slice", *(None if bound is None else _value(bound, scope) for bound in bounds)))
    raise UndecidedError


def _all(expressions: tuple[nodes.Node, ...] | list[nodes.Expr], scope: Scope) -> tuple[Hashable, ...]:
    """The values of several expressions, with their types, so that 1 and true differ."""
    return tuple((type(value).__name__, value) for value in (_value(node, scope) for node in expressions))


def _truth_of_truths(node: nodes.And | nodes.Or, scope: Scope) -> bool:
    """The value of `and` and `or` where both sides are truth values; else it would be one of the sides."""
    left = _value(node.left, scope)
    if not isinstance(left, bool):
        raise UndecidedError
    if left != isinstance(node, nodes.And):
        return left
    right = _value(node.right, scope)
    if not isinstance(right, bool):
        raise UndecidedError
    return right


def _compared(node: nodes.Compare, scope: Scope) -> bool:
    if len(node.ops) != 1:
        raise UndecidedError
    operator, left, right = node.ops[0].op, _value(node.expr, scope), _value(node.ops[0].expr, scope)
    if operator in ("in", "notin"):
        return _is_in(left, right) == (operator == "in")
    if type(left) is not type(right) or not isinstance(left, str | int) or not isinstance(right, str | int):
        raise UndecidedError
    return bool(COMPARISONS[_SIGNS[operator]](left, right))


def _is_in(left: Hashable, right: Hashable) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left in right
    if isinstance(left, str) and isinstance(right, tuple) and all(isinstance(item, str) for item in right):
        return left in right
    raise UndecidedError


def _is_defined(name: str, scope: Scope) -> bool:
    if scope.sees(name):
        return True
    if name in PLATFORM_WORDS:
        raise UndecidedError
    if name in scope.values:
        scope.reads.add(name)
        return True
    return False


def _filtered(node: nodes.Filter, scope: Scope) -> Hashable:
    if node.node is None or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise UndecidedError
    if node.name == "default" and isinstance(node.node, nodes.Name) and len(node.args) == 1:
        return _value(node.node if _is_defined(node.node.name, scope) else node.args[0], scope)
    subject = _value(node.node, scope)
    arguments = [_value(argument, scope) for argument in node.args]
    match node.name, subject, arguments:
        case "int", str(), [] if subject.isascii() and subject.isdigit():
            return int(subject)
        case "int", int(), []:
            return int(subject)
        case "version_to_buildstring", str(), []:
            return short_version(subject)
        case "split", str(), [str(separator)] if separator:
            return tuple(subject.split(separator))
        case "replace", str(), [str(old), str(new)] if old:
            return subject.replace(old, new)
        case "first", tuple(), [] if subject:
            return cast("Hashable", subject[0])
        case "last", tuple(), [] if subject:
            return cast("Hashable", subject[-1])
    if node.name in _FILTERS:
        return Term(("filter", node.name, *_all(node.args, scope), (type(subject).__name__, subject)))
    raise UndecidedError


def _item(node: nodes.Getitem, scope: Scope) -> Hashable:
    owner, place = _value(node.node, scope), _value(node.arg, scope)
    if isinstance(owner, tuple) and type(place) is int and 0 <= place < len(owner):
        return cast("Hashable", owner[place])
    return Term(("item", (type(owner).__name__, owner), (type(place).__name__, place)))


def _called(node: nodes.Call, scope: Scope) -> Hashable:
    if node.dyn_args or node.dyn_kwargs:
        raise UndecidedError
    arguments = (*_all(node.args, scope), *((keyword.key, *_all((keyword.value,), scope)) for keyword in node.kwargs))
    if isinstance(node.node, nodes.Getattr):
        owner, attribute = node.node.node, node.node.attr
        if isinstance(owner, nodes.Name) and owner.name == "env" and "env" not in scope.context:
            return Term(("env", attribute, *arguments))
        return Term(("method", attribute, *_all((owner,), scope), *arguments))
    name = node.node.name if isinstance(node.node, nodes.Name) else ""
    if name == "match" and len(node.args) == 2 and not node.kwargs:
        return matches(_value(node.args[0], scope), _value(node.args[1], scope))
    if name not in _FUNCTIONS:
        raise UndecidedError
    term = Term((name, *arguments))
    scope.reads.add(term)
    return term


def _combined(node: nodes.BinExpr | nodes.Concat, scope: Scope) -> Hashable:
    operands = node.nodes if isinstance(node, nodes.Concat) else [node.left, node.right]
    values = [_value(operand, scope) for operand in operands]
    if all(type(value) is str for value in values) and isinstance(node, nodes.Add | nodes.Concat):
        return "".join(str(value) for value in values)
    return Term((type(node).__name__, *((type(value).__name__, value) for value in values)))
