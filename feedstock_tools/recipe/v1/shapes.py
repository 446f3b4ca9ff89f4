"""Which variants take the same way through a `recipe.yaml`, found without the engine.

The engine's answer for a variant depends on the variables that it reads on its way: where two variants make the same
conditions true, read the same variables, and give the same names of packages, their outputs use the same variables, and
the engine need only be asked for one of them. A part of a recipe whose effect is not certain (`expressions`) counts as
different for all values of the variables that it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.certain_values import NOTHING, Term, UndecidedError, Written
from feedstock_tools.recipe.v1.expressions import Evaluated, Scope, pieces, truth
from feedstock_tools.yaml_reading.nodes import Node, compose, items, members, pairs

_TEMPLATE = re.compile(r"\$\{\{(.*?)(?:\}\}|\Z)", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*")


class _Matters(Enum):
    """What the engine makes of a part."""

    READS = auto()
    TEXT = auto()
    TRUTH = auto()
    NAME = auto()


#: Parts whose text matters, by the end of their path; of all others only the variables that they read.
_TEXTS = frozenset(
    {
        *(("package", "name"), ("build", "noarch"), ("variant", "use_keys"), ("variant", "ignore_keys")),
    }
)
_WHOLE_TEXTS = frozenset({"about", "extra", "python", "inherit", "cache", "staging"})
_NAMES = frozenset({("requirements", "build"), ("requirements", "host")})


@dataclass(frozen=True, slots=True)
class _Site:
    """A text with a template or condition, and the words in it, those of the context that it refers to included."""

    text: str
    matters: _Matters
    skips: bool
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sites:
    """The parts of a recipe that can depend on a variant, and its own variables."""

    context: Mapping[str, Written | None]
    parts: tuple[_Site, ...]

    def of_skip(self) -> Sites:
        """Those that decide whether the recipe is skipped."""
        return Sites(self.context, tuple(part for part in self.parts if part.skips))


def read_sites(text: str) -> Sites:
    """The parts of a `recipe.yaml` that can depend on a variant.

    Raises:
        InputError: it is not YAML.
    """
    content = compose(text)
    context = {
        name: Written(node.value, not node.style) if node.id == "scalar" else None
        for name, node in members(members(content).get("context")).items()
    }
    mentioned = _closed({name: _words(value.text) if value else frozenset() for name, value in context.items()})
    parts = {found: _Site(*found, _with_context(_words(*found[:2]), mentioned)) for found in _walk(content, ())}
    return Sites(context, tuple(parts.values()))


def _words(text: str, matters: _Matters = _Matters.READS) -> frozenset[str]:
    """The words in the templates of a text; all words of a condition, and of a text with statements."""
    is_code = matters is _Matters.TRUTH or "{%" in text
    return frozenset(_WORD.findall(text if is_code else " ".join(_TEMPLATE.findall(text))))


def _closed(context: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """The words that each variable of the context depends on, through others."""
    closed = dict(context)
    for _ in context:
        wider = {name: _with_context(words, closed) for name, words in closed.items()}
        if wider == closed:
            break
        closed = wider
    return closed


def _with_context(words: frozenset[str], context: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return words.union(*(context[word] for word in words if word in context))


def _walk(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[str, _Matters, bool]]:
    """Each text, what matters of it, and whether it decides about `skip`."""
    skips = "skip" in path
    for key, value in pairs(node):
        name = str(key.value)
        if "{" in name:
            yield name, _Matters.TEXT, skips
        if name == "if" and value.id == "scalar":
            yield value.value, _Matters.TRUTH, skips
        else:
            yield from _walk(value, path if name in ("then", "else") else (*path, name))
    for item in items(node):
        yield from _walk(item, path)
    if node is not None and node.id == "scalar":
        matters = _matters(path)
        if matters is _Matters.TRUTH or "${{" in node.value or "{%" in node.value:
            yield node.value, matters, skips


def _matters(path: tuple[str, ...]) -> _Matters:
    if path[-1:] == ("skip",):
        return _Matters.TRUTH
    if path[-2:] in _NAMES:
        return _Matters.NAME
    if path[-2:] in _TEXTS or not _WHOLE_TEXTS.isdisjoint(path):
        return _Matters.TEXT
    return _Matters.READS


class Shapes:
    """The shape of each variant of a platform."""

    def __init__(self, sites: Sites, platform: Platform, keys: Collection[str], looping: Collection[str]) -> None:
        """Start for the variants with `keys`; `looping` are those that differ between them."""
        self._context = sites.context
        self._platform = platform
        self._keys = keys
        self._parts = tuple(
            (site, tuple(sorted(site.words.intersection(looping))))
            for site in sites.parts
            if not site.words.isdisjoint(looping)
        )
        self._known: tuple[dict[tuple[str, ...], Hashable], ...] = tuple({} for _ in self._parts)

    def of(self, values: Mapping[str, str]) -> Hashable:
        """The shape of a variant: equal for variants whose outputs use the same variables."""
        found = []
        evaluated: Evaluated = {}
        for (site, variables), effects in zip(self._parts, self._known, strict=True):
            seen = tuple(values[key] for key in variables)
            if seen not in effects:
                effects[seen] = self._effect(
                    site, Scope(self._platform, self._context, values, evaluated=evaluated), seen
                )
            found.append(effects[seen])
        return tuple(found)

    def _effect(self, site: _Site, scope: Scope, seen: tuple[str, ...]) -> Hashable:
        try:
            if site.matters is _Matters.TRUTH:
                return truth(site.text, scope), frozenset(scope.reads)
            found = pieces(site.text, scope)
        except UndecidedError:
            return "values", seen
        if site.matters is _Matters.READS:
            return frozenset(scope.reads)
        if site.matters is _Matters.NAME:
            return frozenset(scope.reads), self._name(found)
        return frozenset(scope.reads), tuple((type(piece).__name__, piece) for piece in found)

    def _name(self, found: tuple[Hashable, ...]) -> Hashable:
        """The key that a requirement without version uses, if any; all of a requirement that may be either."""
        plain = [piece for piece in found if piece != NOTHING]
        written = "".join(str(piece) for piece in plain if not isinstance(piece, Term | tuple))
        if len(written.split()) > 1:
            return None
        if any(isinstance(piece, Term | tuple) for piece in plain):
            return tuple((type(piece).__name__, piece) for piece in plain)
        match = _NAME.fullmatch(written)
        name = match[1].replace("-", "_").lower() if match else ""
        return name if name in self._keys else None
