"""The values of expressions in a `recipe.yaml`, as far as they are certain to be the engine's.

A rerender asks of an expression which variables it reads and whether it is true; for this it need not call the engine
for each variant. Outside this part of the language `UndecidedError` leaves it to the engine. A test asks both the same.

`Scope` has what an expression can read: its names, and what functions give; that of `importing` has texts with marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, reduce
from itertools import takewhile
from operator import add
from typing import Any, TypeAlias, cast

from jinja2 import Environment, TemplateSyntaxError, nodes

from feedstock_tools.conditions.tree import COMPARISONS, Match
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1_engine import typed_value
from feedstock_tools.recipe.written.sites import ContextValue

#: The engine's variables for the target platform.
PLATFORM_WORDS = (
    *("linux", "osx", "win", "unix"),
    *("x86_64", "aarch64", "arm64", "ppc64le", "s390x", "riscv64"),
    *("linux64", "linux32", "win64", "win32"),
)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,8}")
_VERSION_LIKE = re.compile(r"[0-9]+(?:\.[0-9]+)+")
#: Texts that YAML takes for nothing else.
_PLAIN = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|nan|inf)$)[A-Za-z_/][^\0]*")
TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
#: Functions and filters without side effects whose result is used but not looked into.
FUNCTIONS = frozenset({"compiler", "stdlib", "cdt", "pin_subpackage", "pin_compatible"})
#: What the engine knows while it writes a build string.
_OF_BUILD_STRINGS = ("hash", "build_number")
_OPAQUE_FILTERS = frozenset({"replace", "join", "list", "slice"})
_INTEGER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?")
_CASES: Mapping[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "trim": str.strip}
#: Jinja's names of comparisons.
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
_DEEPEST = 40
#: Longer texts and larger numbers are left to the engine.
_LONGEST, _LARGEST = 1_000_000, 2**62
#: The value of each variable and what was read for it; None: it has no certain value.
Evaluated: TypeAlias = dict[str, tuple[Hashable, frozenset[Hashable]] | None]


class UndecidedError(Exception):
    """Only the engine knows the value."""


@dataclass(frozen=True, slots=True)
class Term:
    """A value with only a known origin: equal terms have equal values."""

    made_by: tuple[Hashable, ...]


#: The result of a condition without `else` that is false: an empty text.
NOTHING = Term(("nothing",))


def as_text(value: Hashable) -> Hashable:
    """The value of a template in quotes: the text of its value without them."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def scalar(text: str) -> Hashable:
    """The value of a text without quotes."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    if _VERSION_LIKE.fullmatch(text) or _PLAIN.fullmatch(text):
        return text
    raise UndecidedError


def is_platform(word: str, platform: Platform) -> bool:
    """The value of a variable such as `linux` or `x86_64` on a platform."""
    system, _, machine = platform.subdir.partition("-")
    machine = "x86_64" if machine == "64" else machine
    if system not in ("linux", "osx", "win"):
        raise UndecidedError
    if word in ("linux", "osx", "win"):
        return system == word
    if word == "unix":
        return system in ("linux", "osx")
    if word in ("linux64", "linux32", "win64", "win32"):
        return platform.subdir == f"{word[:-2]}-{word[-2:]}"
    return machine == word


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
        return self._of_context(name) if self.sees(name) else self.given(name)

    def given(self, name: str) -> Hashable:
        """The value of a name that the recipe does not set."""
        if name in self.values:
            self.reads.add(name)
            return typed_value(self.values[name])
        if name in _OF_BUILD_STRINGS:
            return Term((name,))
        if name in PLATFORM_WORDS:
            return is_platform(name, self.platform)
        raise UndecidedError

    def is_defined(self, name: str) -> bool:
        """Whether a name has a value."""
        if self.sees(name):
            return True
        if name in PLATFORM_WORDS:
            raise UndecidedError
        if name in self.values:
            self.reads.add(name)
            return True
        return False

    def called(self, name: str, arguments: Sequence[Hashable], keywords: Mapping[str, Hashable]) -> Hashable:
        """What a function gives; those of `env` are called `env.get` and the like."""
        match name, arguments:
            case "match", [(str() | int()) as version, str(spec)] if not isinstance(version, bool) and not keywords:
                known = Match("", spec).holds(version if isinstance(version, str) else str(int(version)))
                if known is not None:
                    return known
        term = Term((name, *_typed(arguments), *((key, *_typed((value,))) for key, value in keywords.items())))
        if name in FUNCTIONS:
            self.reads.add(term)
        elif not name.startswith("env."):
            raise UndecidedError
        return term

    def filtered(self, name: str, subject: Hashable, arguments: Sequence[Hashable]) -> Hashable:
        """What a filter makes of a value."""
        match name, subject, arguments:
            case "int", str(), [] if _INTEGER.fullmatch(subject):
                return int(subject.partition(".")[0])
            case "int" | "abs", int(), []:
                return abs(subject) if name == "abs" else subject
            case "version_to_buildstring", str(), [] if subject:
                return "".join(subject.split()[0].split(".")[:2])
            case "split", str(), []:
                return tuple(subject.split())
            case "split", str(), [str(separator)] if separator:
                return tuple(subject.split(separator))
            case "split", str(), [str(separator), int(most)] if separator:
                return tuple(subject.split(separator, most))
            case "replace", str(), [str(old), str(new)] if old:
                return subject.replace(old, new)
            case "join", tuple(), ([] | [str()]):
                texts = [as_text(item) for item in subject]
                if all(isinstance(text, str) for text in texts):
                    return str(arguments[0] if arguments else "").join(map(str, texts))
            case "first" | "last", (str() | tuple()), [] if subject:
                return cast("Hashable", subject[0 if name == "first" else -1])
            case "lower" | "upper" | "trim", str(), []:
                return _CASES[name](subject)
            case "length" | "count", (str() | tuple()), []:
                return len(subject)
            case "list", tuple(), []:
                return subject
        if name in _OPAQUE_FILTERS:
            return Term(("filter", name, *_typed(arguments), *_typed((subject,))))
        raise UndecidedError

    def _of_context(self, name: str) -> Hashable:
        if name not in self.evaluated:
            before = frozenset(takewhile(lambda other: other != name, self.context))
            inner = replace(self, known=before, depth=self.depth + 1, reads=set())
            try:
                self.evaluated[name] = inner.written(name, self.context[name]), frozenset(inner.reads)
            except UndecidedError:
                self.evaluated[name] = None
        evaluated = self.evaluated[name]
        if evaluated is None:
            raise UndecidedError
        value, reads = evaluated
        self.reads |= reads
        return value

    def written(self, _name: str, written: ContextValue | None) -> Hashable:
        """The value of a variable of the context, in the scope of its text."""
        if written is None or self.depth > _DEEPEST + 1:
            raise UndecidedError
        text, plain = written.text, written.plain
        if "{" not in text:
            return scalar(text) if plain else text
        parts = pieces(text, self)
        if len(parts) == 1:
            return parts[0] if plain else as_text(parts[0])
        if not all(isinstance(piece, str) for piece in parts):
            return Term(parts)
        value = joined(parts)
        return scalar(str(value)) if plain else value


def pieces(text: str, scope: Scope) -> tuple[Hashable, ...]:
    """The parts of a text: its templates' values, and the texts between them.

    Raises:
        UndecidedError: a template has no certain value, or the text has statements.
    """
    if "{%" in text or "{#" in text:
        raise UndecidedError
    parts = TEMPLATE.split(text)
    values: list[Hashable] = []
    for number, part in enumerate(parts):
        if number % 2:
            values.append(value_of(part, scope))
        elif part:
            values.append(part)
    return tuple(values)


def joined(texts: Iterable[Any]) -> Hashable:
    """Texts as one; those that print as something else keep both forms."""
    return _bounded(reduce(add, texts, ""))


def truth(text: str, scope: Scope) -> bool:
    """Whether a condition holds; it may be written with the marks of a template.

    Raises:
        UndecidedError: that is not certain.
    """
    inner = TEMPLATE.fullmatch(text.strip())
    if inner is None and "{" in text:
        raise UndecidedError
    return is_true(value_of(inner[1] if inner else text, scope))


def holds(text: str, scope: Scope) -> bool | None:
    """As `truth`; None if that is not certain."""
    try:
        return truth(text, scope)
    except UndecidedError:
        return None


def value_of(expression: str, scope: Scope) -> Hashable:
    """The value of an expression, as text, number, truth value, list or `Term`.

    Raises:
        UndecidedError: it has no certain value.
    """
    node = node_of(expression)
    if node is None:
        raise UndecidedError
    return _value(node, scope)


@cache
def _environment() -> Environment:
    return Environment(autoescape=True)


@lru_cache(maxsize=8192)
def node_of(expression: str) -> nodes.Expr | None:
    """The tree of an expression, which callers must not change; None if it is not one."""
    try:
        parsed = _environment().parse("{{ (" + expression + ") }}").body
    except (TemplateSyntaxError, RecursionError):
        return None
    if len(parsed) != 1 or not isinstance(parsed[0], nodes.Output) or len(parsed[0].nodes) != 1:
        return None
    return parsed[0].nodes[0]


def is_true(value: Hashable) -> bool:
    """Whether a value counts as true."""
    if value == NOTHING or value is None:
        return False
    if isinstance(value, str | bool | int | tuple):
        return bool(value)
    raise UndecidedError


def _value(node: nodes.Node, scope: Scope) -> Hashable:
    match node:
        case nodes.Const() if node.value is None or isinstance(node.value, str | bool | int):
            return node.value
        case nodes.TemplateData():
            return str(node.data)
        case nodes.Name():
            return scope.of(node.name)
        case nodes.CondExpr():
            if is_true(_value(node.test, scope)):
                return _value(node.expr1, scope)
            return NOTHING if node.expr2 is None else _value(node.expr2, scope)
        case nodes.And() | nodes.Or():
            left = _value(node.left, scope)
            return left if is_true(left) == isinstance(node, nodes.Or) else _value(node.right, scope)
        case nodes.Not():
            return not is_true(_value(node.node, scope))
        case nodes.Compare():
            return _compared(node, scope)
        case nodes.Test():
            return _tested(node, scope)
        case nodes.Filter():
            return _filtered(node, scope)
        case nodes.Call():
            return _called(node, scope)
        case nodes.Concat():
            return _concatenated([_value(part, scope) for part in node.nodes])
        case nodes.Add() | nodes.Sub() | nodes.Mul() | nodes.FloorDiv() | nodes.Mod():
            return _computed(type(node).__name__, _value(node.left, scope), _value(node.right, scope))
        case nodes.Neg():
            return _computed("Sub", 0, _value(node.node, scope))
        case nodes.Tuple() | nodes.List():
            return tuple(_value(item, scope) for item in node.items)
        case nodes.Getitem():
            return _item(node, scope)
    raise UndecidedError


def _typed(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Values with their types, so that 1 and true differ."""
    return tuple((type(value).__name__, value) for value in values)


def _bounded(value: Hashable) -> Hashable:
    if (isinstance(value, str) and len(value) > _LONGEST) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise UndecidedError
    return value


def _compared(node: nodes.Compare, scope: Scope) -> bool:
    if len(node.ops) != 1:
        raise UndecidedError
    operator, left, right = node.ops[0].op, _value(node.expr, scope), _value(node.ops[0].expr, scope)
    if operator in ("in", "notin"):
        return _is_in(left, right) == (operator == "in")
    if operator in ("eq", "ne"):
        return _is_equal(left, right) == (operator == "eq")
    if _kind(left) != _kind(right) or left is None:
        raise UndecidedError
    return bool(COMPARISONS[_SIGNS[operator]](left, right))


def _kind(value: Hashable) -> type:
    """What a value is, where its class may be one of marks."""
    for kind in (str, bool, int, type(None)):
        if isinstance(value, kind):
            return kind
    raise UndecidedError


def _is_equal(left: Hashable, right: Hashable) -> bool:
    kinds = {_kind(left), _kind(right)}
    if kinds == {bool, int}:
        raise UndecidedError
    return len(kinds) == 1 and left == right


def _is_in(left: Hashable, right: Hashable) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left in right
    if isinstance(right, tuple):
        return any(_is_equal(left, item) for item in right)
    raise UndecidedError


def _tested(node: nodes.Test, scope: Scope) -> bool:
    subject = node.node
    if node.name in ("defined", "undefined") and isinstance(subject, nodes.Name):
        return scope.is_defined(subject.name) == (node.name == "defined")
    value, arguments = _value(subject, scope), [_value(argument, scope) for argument in node.args or ()]
    match node.name, value, arguments:
        case "startingwith", str(), [str(start)]:
            return value.startswith(start)
        case "endingwith", str(), [str(end)]:
            return value.endswith(end)
        case "string" | "none", _, []:
            return _kind(value) is (str if node.name == "string" else type(None))
    raise UndecidedError


def _filtered(node: nodes.Filter, scope: Scope) -> Hashable:
    if node.node is None or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise UndecidedError
    if node.name in ("default", "d") and isinstance(node.node, nodes.Name) and len(node.args) == 1:
        return _value(node.node if scope.is_defined(node.node.name) else node.args[0], scope)
    subject = _value(node.node, scope)
    return _bounded(scope.filtered(node.name, subject, [_value(argument, scope) for argument in node.args]))


def _item(node: nodes.Getitem, scope: Scope) -> Hashable:
    owner = _value(node.node, scope)
    place = node.arg
    ends = (place.start, place.stop, place.step) if isinstance(place, nodes.Slice) else (place,)
    bounds: list[Any] = [None if end is None else _value(end, scope) for end in ends]
    if isinstance(owner, str | tuple) and all(bound is None or type(bound) is int for bound in bounds):
        if isinstance(place, nodes.Slice):
            return owner[slice(*bounds)]
        if -len(owner) <= bounds[0] < len(owner):
            return cast("Hashable", owner[bounds[0]])
    return Term((type(place).__name__, *_typed((owner, *bounds))))


def _called(node: nodes.Call, scope: Scope) -> Hashable:
    if node.dyn_args or node.dyn_kwargs:
        raise UndecidedError
    name = node.node.name if isinstance(node.node, nodes.Name) else ""
    if isinstance(node.node, nodes.Getattr) and isinstance(node.node.node, nodes.Name):
        name = f"{node.node.node.name}.{node.node.attr}"
    if not name or (name.startswith("env.") and "env" in scope.context):
        raise UndecidedError
    keywords = {keyword.key: _value(keyword.value, scope) for keyword in node.kwargs}
    return scope.called(name, [_value(argument, scope) for argument in node.args], keywords)


def _concatenated(values: Sequence[Hashable]) -> Hashable:
    texts = [as_text(value) for value in values]
    return joined(texts) if all(isinstance(text, str) for text in texts) else Term(("Concat", *_typed(values)))


def _computed(operator: str, left: Hashable, right: Hashable) -> Hashable:
    if operator == "Add" and isinstance(left, str) and isinstance(right, str):
        return joined((left, right))
    match operator, left, right:
        case "Add", tuple(), tuple():
            return (*left, *right)
        case _, int(), int() if not isinstance(left, bool) and not isinstance(right, bool):
            match operator:
                case "Add":
                    return _bounded(left + right)
                case "Sub":
                    return _bounded(left - right)
                case "Mul":
                    return _bounded(left * right)
                case "FloorDiv" if left >= 0 and right > 0:
                    return left // right
                case "Mod" if left >= 0 and right > 0:
                    return left % right
    return Term((operator, *_typed((left, right))))
