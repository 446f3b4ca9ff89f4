"""The `context` of a recipe: the versions of its variables that are needed, each under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import nodes

from feedstock_tools.to_v1.template.conditions import When
from feedstock_tools.to_v1.template.expressions import UntranslatableError, names_in, parsed
from feedstock_tools.to_v1.template.names import Names

#: Names that rattler-build knows in build strings alone.
_OF_BUILD_STRINGS = frozenset({"hash"})
_TAG = re.compile(r"\b(\w+?)__v(\d+)\b")
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
    """An entry of a `context`."""

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
        comments[tag] = tuple(dict.fromkeys(line for group in [*inlined_comments, version.comments] for line in group))
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
        base = f"{name}_value" if name in keys.values else name
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
    if isinstance(node, nodes.Const) and isinstance(node.value, int) and node.value:
        return False  # the number that people raise
    return sum(tags_in(other.text).count(tag) for other in versions.values()) == 1


def renamed(text: str, final: Mapping[str, str]) -> str:
    """A text with the names that versions of variables get in a recipe."""
    return _TAG.sub(lambda match: final.get(match[0], match[0]), text)


def _with_ends(text: str, plain: Mapping[str, str]) -> str:
    """An expression with the versions at its ends written out, where these need no brackets."""
    first, last = _TAG.match(text), _LAST_TAG.search(text)
    start = plain.get(first[0], "") if first else ""
    if first and " ~ " in start and text[first.end() :].startswith(" ~ ") and isinstance(parsed(start), nodes.Concat):
        text = start + text[first.end() :]
    if last and last[1] in plain and isinstance(parsed(plain[last[1]]), nodes.CondExpr):
        text = text[: last.start(1)] + plain[last[1]]
    return text


def _names(text: str) -> list[nodes.Name]:
    return names_in(parsed(text))
