"""Conditions of a `recipe.yaml`: texts that hold together, as a selector and the blocks around its line do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from jinja2 import nodes

from feedstock_tools.conditions.recipes import parse, unbracketed
from feedstock_tools.conditions.tree import And, Compare, Constant, Items, Leaf, Match, Name, Not, Or, Other, compared
from feedstock_tools.conditions.tree import truth as truth_of
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.recipe.v1.expressions import PLATFORM_WORDS, is_platform
from feedstock_tools.to_v1.expressions import Names, parsed
from feedstock_tools.to_v1.writing import rewritten, translated

#: Conditions that all hold; an empty one always does.
When = tuple[str, ...]
#: A condition that never holds.
NEVER: When = ("false",)
#: Whether each name of platforms holds on the platforms of conda-forge.
_EACH = {
    subdir: {word: is_platform(word, Platform.parse(subdir)) for word in PLATFORM_WORDS}
    for subdir in KNOWN_SUBDIRS
    if subdir.startswith(("linux-", "osx-", "win-"))
}
_LINUX = MappingProxyType(_EACH["linux-64"])
_PLATFORMS = {"build_platform", "target_platform"}
_OPPOSITES = {"win": "unix", "unix": "win"}
_COMPARISONS = {"==": "!=", "!=": "==", "in": "not in", "not in": "in"}
_BELOW = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_BOUND = re.compile(r"(<=?|>=?)([\d.]+)")
_TEMPLATE = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_DEFINED = re.compile(r"(.+) is (un)?defined", re.DOTALL)


def literals(expression: str, names: Names, own: frozenset[str] = frozenset(), *, selector: bool = False) -> When:
    """An expression as conditions that hold together, without those that always do.

    >>> literals("win and x != 'a'", Names(always=frozenset({"x"})), selector=True)
    ('win', 'x != "a"')
    """
    texts = [translated(expression, names, own, selector=selector)]
    return simplified(part for text in texts for part in _split(text))


def _split(text: str) -> Iterator[str]:
    tree = parse(text, "expression")
    if isinstance(tree, And):
        for part in tree.parts:
            yield from _split(rewritten(parsed(text[slice(*part.span)])))
    else:
        yield rewritten(parsed(text))


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


def truth(text: str, known: Mapping[str, bool] = MappingProxyType({})) -> bool | None:
    """The value of a condition of literals and names with `known` values; None if it depends on something else."""
    tree = parse(text, "expression")
    return None if tree is None else truth_of(tree, lambda leaf: _truth_of_leaf(leaf, known))


def on_linux(when: When) -> When:
    """The conditions that are left on linux-64.

    >>> on_linux(("not win", "x")), on_linux(("build_platform != target_platform",))
    (('x',), ('false',))
    """
    truths = {part: truth(part, _LINUX) for part in when}
    return NEVER if False in truths.values() else tuple(part for part in when if truths[part] is None)


def folded(text: str, when: When) -> str:
    """A text of a recipe where `when` holds: its templates do not ask again for what these conditions say.

    >>> folded('bash ${{ "a.sh" if unix else "a.bat" }}', ("unix",))
    'bash a.sh'
    """
    return _TEMPLATE.sub(lambda match: _folded(match, when), text) if " if " in text else text


def _folded(match: re.Match[str], when: When) -> str:
    node = tree = parsed(match[1])
    while isinstance(node, nodes.CondExpr) and node.expr2 is not None:
        test = (rewritten(node.test),)
        if not any(part in test or _complements(part, test[0]) for part in when):
            break
        node = node.expr1 if test[0] in when else node.expr2
    if node is tree:
        return match[0]
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return node.value
    return f"${{{{ {rewritten(node)} }}}}"


def _truth_of_leaf(leaf: Leaf, known: Mapping[str, bool]) -> bool | None:
    match leaf:
        case Name(name):
            return known.get(name)
        case Compare(Name(left), "==" | "!=" as sign, Name(right)) if known and {left, right} == _PLATFORMS:
            return sign == "=="  # what is known is known of a native build
        case Compare(Constant(left), sign, (Constant(right) | Items(right))):
            return compared(left, sign, right)
    return None


def negated(when: When) -> When:
    """Conditions that hold where `when` does not.

    >>> negated(("win",)), negated(('x == "a"',)), negated(("win", "x")), negated(('match(python, "<3.13")',))
    (('not win',), ('x != "a"',), ('not (win and x)',), ('match(python, ">=3.13")',))
    """
    if not when:
        return NEVER
    if when == NEVER:
        return ()
    if len(when) > 1:
        return (f"not ({' and '.join(_bracketed(part) for part in when)})",)
    return (_opposite(when[0]),)


def _opposite(text: str) -> str:
    match parse(text, "expression"):
        case Not(part) if not isinstance(part, And | Or) and not (isinstance(part, Other) and part.is_loose):
            return unbracketed(text[slice(*part.span)])
        case Compare(left, sign, right) if sign in _COMPARISONS:
            return unbracketed(f"{text[: left.span[1]]} {_COMPARISONS[sign]} {text[right.span[0] :]}")
        case Match(name, spec) if bound := _BOUND.fullmatch(spec):
            return str(Match(name, _BELOW[bound[1]] + bound[2]))
        case Other(is_loose=False) if defined := _DEFINED.fullmatch(text):
            return f"{defined[1]} is {'' if defined[2] else 'un'}defined"
        case And() | Or() | Other(is_loose=True) | None:
            return f"not ({text})"
    return f"not {text}"


def _bracketed(text: str) -> str:
    match parse(text, "expression"):
        case Or() | Other(is_loose=True) | None:
            return f"({text})"
    return text


def all_of(when: When) -> str:
    """Conditions as one expression.

    >>> all_of(("win or osx", "x"))
    '(win or osx) and x'
    """
    return " and ".join(_bracketed(part) if len(when) > 1 else part for part in when)


def without(when: When, known: When) -> When:
    """The conditions that are not among the `known` ones, which hold already."""
    return tuple(part for part in when if part not in known)


def unimplied(when: When) -> When:
    """The conditions that do not follow from the others.

    >>> unimplied(("linux or x", "linux")), unimplied(("linux or osx", "aarch64")), unimplied(("linux", "osx or win"))
    (('linux',), ('aarch64',), ('linux', 'osx or win'))
    """
    kept = when
    for part in when:
        others = tuple(other for other in kept if other != part)
        if any(other in others for other in _alternatives(part)) or _follows(part, others):
            kept = others
    return kept


def _follows(part: str, others: When) -> bool:
    """Whether a condition holds on each platform on which others can."""
    possible = [names for names in _EACH.values() if not any(truth(other, names) is False for other in others)]
    return bool(others and possible) and all(truth(part, names) is True for names in possible)


def _alternatives(text: str) -> Iterator[str]:
    tree = parse(text, "expression")
    if isinstance(tree, Or):
        yield from (rewritten(parsed(text[slice(*part.span)])) for part in tree.parts)


def _complements(first: str, second: str) -> bool:
    return _OPPOSITES.get(first) == second or _opposite(first) == second


def are_exhaustive(first: When, second: When) -> bool:
    """Whether exactly one of two conditions always holds."""
    if len(first) == 1 == len(second):
        return _complements(first[0], second[0])
    return bool(first and second) and (negated(first) == second or negated(second) == first)


def exclude(first: When, second: When) -> bool:
    """Whether two conditions never hold together, as far as their texts tell.

    >>> exclude(("linux64",), ("osx",)), exclude(("linux64",), ("aarch64",)), exclude(("linux",), ("aarch64",))
    (True, True, False)
    """
    pairs = [(left, right) for left in first for right in second if left != right]
    if any(_complements(left, right) or _are_values_of_one(left, right) for left, right in pairs):
        return True
    return all(any(truth(part, names) is False for part in (*first, *second)) for names in _EACH.values())


def _are_values_of_one(first: str, second: str) -> bool:
    """Whether two conditions compare one value with different texts."""
    match parse(first, "expression"), parse(second, "expression"):
        case Compare(one, "==", Constant(left)), Compare(other, "==", Constant(right)):
            is_one = first[slice(*one.span)] == second[slice(*other.span)]
            return is_one and isinstance(left, str) and isinstance(right, str) and left != right
    return False


def joined(*groups: Sequence[str]) -> When:
    """Conditions that all hold."""
    return simplified(part for group in groups for part in group)
