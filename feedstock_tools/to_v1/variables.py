"""The variables of a recipe while its statements are followed, and the `context` that holds those that are needed.

A `context` knows one value for each name, so each `set` makes another version of a variable: `build = build + 200`
becomes a second variable, or part of an expression.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v0.functions import DATETIME
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.to_v1.conditions import When, all_of, are_exhaustive, literals, negated, without
from feedstock_tools.to_v1.expressions import Names, UntranslatableError, is_text, names_in, parsed, quoted
from feedstock_tools.to_v1.writing import rewritten, written

#: Names that rattler-build knows in build strings alone.
_OF_BUILD_STRINGS = frozenset({"hash"})
#: Keys that recipes set for themselves under their own names: rattler-build takes an entry of the context first.
_OF_RECIPES = frozenset({"python_min"})
_TAG = re.compile(r"\b(\w+?)__v(\d+)\b")
#: What templates of conda-build can call, and those of rattler-build cannot.
_MODULES = {"datetime": DATETIME}
#: The longest template that is rendered (recipe/v1/templates.py).
_LONGEST = 20_000
_LAST_TAG = re.compile(r" else (\w+__v\d+)$")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a variable: its expression for rattler-build, which may name other versions."""

    name: str
    tag: str
    text: str
    line: int
    comments: tuple[str, ...]
    remark: str = ""
    #: The conditions under which it is set at all.
    scope: When = ()


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    expression: str
    comments: tuple[str, ...]
    remark: str = ""


def context_of(
    variables: Mapping[str, Version],
    keys: Names,
    used: frozenset[str],
    numbers: frozenset[str] = frozenset(),
    *,
    shared: bool = True,
) -> tuple[tuple[Entry, ...], dict[str, str]]:
    """The entries of the context that a recipe needs, and what each used version becomes in its expressions.

    Args:
        used: the versions that the recipe names.
        shared: several outputs read the context, and each reads all of it. An expression is therefore written where it
            is used if it depends on a key with several values, for each of which all outputs would be built.
        numbers: the versions that are the build number and may be called `build_number`; with '' no others may.
    """
    needed = _needed(variables, used)
    chosen = {tag: version for tag, version in variables.items() if tag in needed}
    inlined = {tag for tag in chosen if tag not in used and _may_be_inlined(chosen, tag)}
    inlined |= {tag for tag, version in chosen.items() if _reads_itself(version)}
    inlined |= _reading(chosen, _OF_BUILD_STRINGS)
    if shared:
        inlined |= _reading(chosen, keys.looping)
    names = _final_names(chosen, keys, [tag for tag in chosen if tag not in inlined], numbers)
    final: dict[str, str] = dict(names)
    plain: dict[str, str] = {}
    entries = []
    comments: dict[str, tuple[str, ...]] = {}
    for tag, version in chosen.items():
        inlined_comments = [comments.get(part, ()) for part in tags_in(version.text) if part in inlined]
        groups = dict.fromkeys([*inlined_comments, version.comments])
        comments[tag] = tuple(line for group in groups for line in group)
        text = renamed(_with_ends(version.text, plain), final)
        if len(text) > _LONGEST:
            message = (
                f"{version.name}, set in line {version.line}, becomes an expression of more than {_LONGEST} characters"
            )
            raise UntranslatableError(message)
        if tag in inlined:
            plain[tag] = text
            final[tag] = operand(text)
        else:
            entries.append(Entry(names[tag], text, comments[tag], version.remark))
    return tuple(entries), final


def _needed(variables: Mapping[str, Version], used: frozenset[str]) -> set[str]:
    todo, needed = list(used), set()
    while todo:
        tag = todo.pop()
        if tag not in needed and tag in variables:
            needed.add(tag)
            todo += tags_in(variables[tag].text)
    return needed


def _reading(chosen: Mapping[str, Version], wanted: frozenset[str]) -> set[str]:
    """The versions that depend on the `wanted` names."""
    tags: set[str] = set()
    for tag, version in chosen.items():
        names = {name.name for name in _names(version.text)}
        if names & wanted or names & tags:
            tags.add(tag)
    return tags


def _reads_itself(version: Version) -> bool:
    """Whether a version reads the key of a variant that it is named after: a context entry would hide that."""
    return any(name.name == version.name for name in _names(version.text))


def _final_names(
    variables: Mapping[str, Version], keys: Names, tags: Sequence[str], numbers: frozenset[str]
) -> dict[str, str]:
    """A name for each version: the first keeps that of the variable."""
    reserved = {"build_number"} if "" in numbers else set()
    taken: set[str] = set()
    names: dict[str, str] = {}
    for tag in tags:
        name = variables[tag].name
        base = f"{name}_value" if name in keys.values and name not in _OF_RECIPES else name
        candidates = [base, *(f"{base}_{number}" for number in range(2, len(tags) + 3))]
        first = next(candidate for candidate in candidates if candidate not in taken | reserved)
        is_number = tag in numbers and (first != base or base == "build_number")
        names[tag] = "build_number" if is_number and "build_number" not in taken else first
        taken.add(names[tag])
    return names


def tags_in(text: str) -> list[str]:
    """The versions of variables that a text names."""
    return [match[0] for match in _TAG.finditer(text)]


def operand(text: str) -> str:
    """An expression, in brackets if it would bind too loosely."""
    node = parsed(text)
    loose = (
        nodes.CondExpr | nodes.And | nodes.Or | nodes.Not | nodes.Compare | nodes.Concat | nodes.BinExpr | nodes.Filter
    )
    return f"({text})" if isinstance(node, loose) else text


def _may_be_inlined(versions: Mapping[str, Version], tag: str) -> bool:
    """Whether a version that only others read is better written where it is read."""
    node = parsed(versions[tag].text)
    readers = [other.text for other in versions.values() if tag in tags_in(other.text)]
    is_added_to = any(text.startswith(f"{tag} + ") for text in readers)
    if isinstance(node, nodes.Const) and isinstance(node.value, int) and (node.value or is_added_to):
        return False  # the number that people raise
    return sum(tags_in(text).count(tag) for text in readers) == 1


def renamed(text: str, final: Mapping[str, str]) -> str:
    """A text with the names that versions of variables get in a recipe."""
    return _TAG.sub(lambda match: final.get(match[0], match[0]), text)


def _with_ends(text: str, plain: Mapping[str, str]) -> str:
    """An expression with the versions at its ends written out, where these need no brackets."""
    first, last = _TAG.match(text), _LAST_TAG.search(text)
    start = plain.get(first[0], "") if first else ""
    joins = ((" ~ ", nodes.Concat), (" + ", nodes.Add))
    if first and any(
        sign in start and text[first.end() :].startswith(sign) and isinstance(parsed(start), kind)
        for sign, kind in joins
    ):
        text = start + text[first.end() :]
    if last and last[1] in plain and isinstance(parsed(plain[last[1]]), nodes.CondExpr):
        text = text[: last.start(1)] + plain[last[1]]
    return text


def _names(text: str) -> list[nodes.Name]:
    return names_in(parsed(text))


#: More versions than any recipe has.
_MOST_VERSIONS = 3_000


class _Named(NodeTransformer):
    """Replaces the names of variables by those of their versions, or by the values of a loop."""

    def __init__(self, current: Mapping[str, str], values: Mapping[str, nodes.Expr]) -> None:
        self.current = current
        self.values = values

    def visit_Name(self, node: nodes.Name) -> nodes.Expr:  # noqa: N802 - as jinja2 names them
        if node.name in self.values:
            return copy.deepcopy(self.values[node.name])
        return nodes.Name(self.current.get(node.name, node.name), "load", lineno=node.lineno)


@dataclass
class Variables:
    """The variables at a place of a recipe, and all versions so far."""

    path: Path
    names: Names
    versions: dict[str, Version] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    loop: dict[str, nodes.Expr] = field(default_factory=dict)
    #: Unconditional statements so far, for values that follow from the recipe alone.
    statements: list[str] = field(default_factory=list)
    static: set[str] = field(default_factory=set)

    def resolved(self, expression: str, when: When = ()) -> nodes.Expr:
        """An expression with the versions of variables at this place, which exists under the conditions `when`."""
        tree = copy.deepcopy(parsed(expression))
        for name in names_in(tree):
            tag = self.current.get(name.name)
            if tag is not None and name.name not in self.loop and without(self.versions[tag].scope, when):
                self._complete(self.versions[tag])
        result = _Named(self.current, self.loop).visit(tree)
        assert isinstance(result, nodes.Expr)  # noqa: S101 - a name becomes an expression
        return result

    def _complete(self, version: Version) -> None:
        """Turn a version that is set only under conditions into one that is always set: undefined names are empty."""
        text = f'{version.tag} if {all_of(version.scope)} else ""'
        self._add(version.name, text, version.line, (), "", ())

    def _add(self, name: str, text: str, line: int, comments: Sequence[str], remark: str, scope: When) -> str:
        tag = f"{name}__v{len(self.versions)}"
        self.versions[tag] = Version(name, tag, text, line, tuple(comments), remark, scope)
        self.current[name] = tag
        return tag

    def written(self, node: nodes.Expr) -> str:
        """An expression with resolved names as rattler-build has it."""
        return written(node, self.names, frozenset(self.versions))

    def translated(self, expression: str, when: When = ()) -> str:
        """An expression of a template at this place, for rattler-build."""
        node = self.resolved(expression, when)
        if not isinstance(node, nodes.Const) and not names_in(node):
            return _literal(self.evaluated(expression), node)
        try:
            self._check_tables(node)
            return self.written(node)
        except UntranslatableError:
            if self.is_static(node):
                return _literal(self.evaluated(expression), node)
            raise

    def _check_tables(self, node: nodes.Expr) -> None:
        """A context has no tables, so what looks one up must follow from the recipe alone."""
        for name in names_in(node):
            version = self.versions.get(name.name)
            if version is not None and version.text.startswith("{") and isinstance(parsed(version.text), nodes.Dict):
                raise UntranslatableError(f"a context has no tables such as '{version.name}'")

    def is_static(self, node: nodes.Expr) -> bool:
        """Whether a value follows from the recipe alone."""
        return all(name.name in self.static | _MODULES.keys() - self.versions.keys() for name in names_in(node))

    def evaluated(self, expression: str) -> str:
        """The value, as text, of an expression that depends only on what the recipe sets."""
        return self._rendered(f"{{{{ {expression} }}}}")

    def _rendered(self, template: str) -> str:
        """A template after the statements so far."""
        values = [f"{{% set {name} = {_source(value)} %}}" for name, value in self.loop.items()]
        try:
            return render(self.path, None, "".join([*self.statements, *values, template]), _MODULES)
        except InputError as error:
            raise UntranslatableError(error.mistakes[0].message) from error

    def assign(
        self, name: str, expression: str, when: When, line: int, comments: Sequence[str] = (), remark: str = ""
    ) -> None:
        """Follow a statement that holds under some conditions."""
        if len(self.versions) >= _MOST_VERSIONS:
            raise UntranslatableError(f"the recipe sets variables more than {_MOST_VERSIONS} times")
        node = self.resolved(expression, when)
        is_static = not when and self.is_static(node)
        if not when:
            self.statements.append(f"{{% set {name} = {expression} %}}")
        try:
            self._check_tables(node)
            text = self.written(node)
        except UntranslatableError:
            if not is_static:
                self.current.pop(name, None)
                raise
            text = quoted(self.evaluated(expression))
        text, scope = self._chosen(name, text, when)
        tag = self._add(name, text, line, comments, remark, scope)
        if is_static:
            self.static.add(tag)

    def _chosen(self, name: str, text: str, when: When) -> tuple[str, When]:
        """The value of a variable after a statement under conditions, and the conditions under which it has one."""
        if not when:
            return text, ()
        condition = all_of(when)
        if name not in self.current:
            if when in ((f"{name} is undefined",), (f"{name} is not defined",)):
                return (name if name in self.names.always else f"{name} | default({text})"), ()
            if name in self.names.values:
                return f"{operand(text)} if {condition} else {self.written(nodes.Name(name, 'load'))}", ()
            return text, when
        old = self.versions[self.current[name]]
        if not without(old.scope, when):
            more = without(when, old.scope)
            return (_added(text, old.tag, all_of(more)) if more else text), old.scope
        if are_exhaustive(old.scope, when):
            return _conditional(text, condition, old.tag), ()
        return _conditional(text, condition, f'{old.tag} if {all_of(old.scope)} else ""'), ()

    def items(self, node: nodes.Expr, source: str, depth: int = 0) -> Iterator[tuple[When, nodes.Expr]]:
        """The items of a list, each with the conditions under which it is there.

        Args:
            source: the list as the recipe writes it.
        """
        own = frozenset(self.versions)
        if depth > 50:
            raise UntranslatableError("the list is nested too deeply")
        match node:
            case nodes.List() | nodes.Tuple():
                yield from (((), item) for item in node.items)
            case nodes.Add():
                yield from self.items(node.left, source, depth + 1)
                yield from self.items(node.right, source, depth + 1)
            case nodes.Mul():
                sides = (node.left, node.right)
                whole = next((side for side in sides if isinstance(side, nodes.List)), None)
                if whole is None:
                    raise UntranslatableError("the list of a loop is computed")
                factor = sides[0] if whole is sides[1] else sides[1]
                when = literals(self.written(factor), self.names, own)
                yield from ((when + inner, item) for inner, item in self.items(whole, source, depth + 1))
            case nodes.CondExpr():
                when = literals(self.written(node.test), self.names, own)
                first = list(self.items(node.expr1, source, depth + 1))
                second = [] if node.expr2 is None else list(self.items(node.expr2, source, depth + 1))
                yield from _either(first, second, when)
            case nodes.Name() if node.name in self.versions:
                version = self.versions[node.name]
                yield from self.items(parsed(version.text), version.name, depth + 1)
            case _:
                yield from self._computed_items(node, source)

    def _computed_items(self, node: nodes.Expr, source: str) -> Iterator[tuple[When, nodes.Expr]]:
        """The items of a list that follows from the recipe alone, such as `range(3)` or `"a b".split()`."""
        if not self.is_static(node):
            raise UntranslatableError("the list of a loop depends on the variant in a way that cannot be unrolled")
        text = f"{{% for each in {source} %}}{{{{ each }}}}\0{{{{ each is number }}}}\1{{% endfor %}}"
        for record in self._rendered(text).split("\1")[:-1]:
            item, _, is_number = record.partition("\0")
            yield (), nodes.Const(int(item) if is_number == "True" and item.lstrip("-").isdecimal() else item)


class _Answered(NodeTransformer):
    """Leaves out the question that a condition around an expression has answered."""

    def __init__(self, condition: str) -> None:
        self.condition = condition

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        return node.expr1 if rewritten(node.test) == self.condition else node


def _answered(node: nodes.Expr, condition: str) -> nodes.Expr:
    found: nodes.Expr = _Answered(condition).visit(copy.deepcopy(node))
    return found


def _conditional(text: str, condition: str, other: str) -> str:
    """A value under a condition, which the value itself need not ask again."""
    asked = parsed(text)
    answered = _answered(asked, condition)
    return f"{operand(text if answered == asked else rewritten(answered))} if {condition} else {other}"


def _added(text: str, old: str, condition: str) -> str:
    """The value of a variable that was set before: with an addition under a condition, or another value."""
    node = parsed(text)
    added = _addition(node, old)
    if added is None:
        return _conditional(text, condition, old)
    more = rewritten(_answered(added, condition))
    if is_text(added) or isinstance(node, nodes.Concat):
        return f'{old} ~ ({operand(more)} if {condition} else "")'
    return f"{old} + ({operand(more)} if {condition} else 0)"


def _addition(node: nodes.Expr, old: str) -> nodes.Expr | None:
    """The addition to the old value of a variable; None if the new value is not a sum with it."""
    if isinstance(node, nodes.Add) and isinstance(node.left, nodes.Name) and node.left.name == old:
        return node.right
    if isinstance(node, nodes.Concat) and isinstance(node.nodes[0], nodes.Name) and node.nodes[0].name == old:
        added = node.nodes[1:]
        return added[0] if len(added) == 1 else nodes.Concat(added)
    return None


def _source(node: nodes.Expr) -> str:
    """An expression in Jinja, of values without names of the variant."""
    match node:
        case nodes.Call() if isinstance(node.node, nodes.Name) and node.node.name == "range":
            return f"range({', '.join(_source(argument) for argument in node.args)})"
        case nodes.Call() if isinstance(node.node, nodes.Getattr):
            arguments = ", ".join(_source(argument) for argument in node.args)
            return f"({_source(node.node.node)}).{node.node.attr}({arguments})"
        case nodes.Filter() if node.node is not None:
            arguments = ", ".join(_source(argument) for argument in node.args)
            return f"({_source(node.node)} | {node.name}({arguments}))"
    return rewritten(node)


def _literal(text: str, node: nodes.Expr) -> str:
    """The literal for a value that Jinja wrote as text."""
    if text in {"True", "False"}:
        return text.lower()
    return text if text.lstrip("-").isdecimal() and not is_text(node) else quoted(text)


def _either(
    first: Sequence[tuple[When, nodes.Expr]], second: Sequence[tuple[When, nodes.Expr]], when: When
) -> Iterator[tuple[When, nodes.Expr]]:
    """The items of one of two lists; items of both, in order, need no condition."""
    remaining = list(second)
    merged = []
    for inner, item in first:
        if remaining and remaining[0] == (inner, item):
            remaining.pop(0)
            merged.append((inner, item))
        else:
            merged.append((when + inner, item))
    if not remaining:
        yield from merged
        return
    yield from ((when + inner, item) for inner, item in first)
    yield from ((negated(when) + inner, item) for inner, item in second)
