"""What a rerender needs of a `recipe.yaml`, from as few calls of the engine as possible.

A configuration needs the names of the outputs, whether they are noarch, and the variables that they use. The engine is
asked once for each way through the recipe, for the first variant that takes it and with the keys that the recipe can
read; the other variants use the same variables with their own values.

Its answer for a variant depends on the variables that it reads on its way: where two variants make the same conditions
true, read the same variables, and give the same names of packages, their outputs use the same variables: they have one
shape. A part of a recipe whose effect is not certain (`expressions`) counts as different for all values of the
variables that it mentions.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import OutlinedOutput, OutlinedRecipe
from feedstock_tools.recipe.v1.expressions import NOTHING, Evaluated, Scope, Term, UndecidedError, pieces, truth
from feedstock_tools.recipe.v1.recipe import (
    WatchV1,
    feedstock_name_of,
    given_values,
    input_variants,
    key_of,
    noarch_of,
    own_values,
    rendered_output,
    reported_values,
)
from feedstock_tools.recipe.v1.variants import MOST_VARIANTS, InputVariants
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, as_reported, is_built, render
from feedstock_tools.recipe.written.sites import ContextValue, Site, context_of, sites_of
from feedstock_tools.variants.model import VariantConfig, VariantSpace, explode
from feedstock_tools.yaml_reading.nodes import compose

_WORD = re.compile(r"\w+")
_COMPILER = re.compile(r"""\b(compiler|stdlib)\(\s*["'](\w+)["']""")
#: Keys that the engine reads without the recipe naming them.
_ALWAYS = re.compile(r"\w+_(?:compiler|stdlib)(?:_version)?|cdt_\w+|channel_\w+|\w+_platform")

_TEMPLATE = re.compile(r"\$\{\{(.*?)(?:\}\}|\Z)", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*")
#: Parts whose text matters, by the end of their path; of all others only the variables that they read.
_TEXTS = frozenset({("package", "name"), ("build", "noarch"), ("variant", "use_keys"), ("variant", "ignore_keys")})
_WHOLE_TEXTS = frozenset({"about", "extra", "python", "inherit", "cache", "staging"})
_NAMES = frozenset({("requirements", "build"), ("requirements", "host")})
#: What of a part the engine's answer depends on.
_Matters: TypeAlias = Literal["reads", "text", "truth", "name"]


class _WiderError(Exception):
    """The engine read, or could have read, keys that were not expected to matter."""

    def __init__(self, keys: Collection[str]) -> None:
        super().__init__()
        self.keys = frozenset(keys)


def outline_recipe_v1(
    recipe: ParsedV1,
    config: VariantConfig,
    platform: Platform,
    *,
    all_branches: bool = False,
    watch: WatchV1 | None = None,
) -> OutlinedRecipe | None:
    """The outputs of a recipe on a platform, without skipped ones; None where only a whole rendering gives them.

    Args:
        config: the variants, built-in defaults included.
        watch: called with one output of each name, and its rendered recipe; other outputs of the name differ from it in
            variant, version and build string at most.
        all_branches: variables count as used in branches that are not taken, too, as with rattler-build until 0.57.

    Raises:
        BoundError: there are more variants than the limit.
    """
    named = _named(recipe.text)
    if any(key in named and len(values) > 1 for key, values in config.extended.items()):
        return None
    space = explode(config)
    variants = input_variants(recipe, config, space, all_branches=all_branches)
    while True:
        engine = _Engine(recipe, config, platform, space, named)
        try:
            outputs = tuple(_outputs(engine, variants))
            break
        except _WiderError as found:
            named |= found.keys
    if watch is not None and not engine.report(watch, variants):
        return None
    return OutlinedRecipe(outputs, space, feedstock_name_of(recipe))


def _named(text: str) -> frozenset[str]:
    """The keys that a recipe names: each word that it has, and what its compilers are called."""
    compilers = {f"{language}_{kind}" for kind, language in _COMPILER.findall(text)}
    return frozenset({*_WORD.findall(text.replace("-", "_")), *compilers, *(f"{key}_version" for key in compilers)})


@dataclass(frozen=True, slots=True)
class _Answer:
    """An output that the engine rendered, with what an outline needs of it."""

    rendering: Rendering
    recipe: Any
    name: str
    noarch: str | None
    reported: Mapping[str, str]


def _outputs(engine: _Engine, variants: InputVariants) -> Iterator[OutlinedOutput]:
    """The different outputs of all rows, in the order of the rows."""
    siblings: set[str] = set()
    same_rows, same_values = set(), set()
    own: dict[tuple[int, int], tuple[Mapping[str, str], tuple[str, ...]]] = {}
    for row in engine.rows():
        for answer in engine.answers(row):
            name, noarch = answer.name, answer.noarch
            siblings.add(key_of(name))
            position = (id(answer), len(siblings))
            if position not in own:
                values = own_values(answer.reported, noarch, siblings)
                own[position] = values, tuple(key for key in values if key in row)
            kept, moving = own[position]
            place = (position, tuple(row[key] for key in moving))
            if place in same_rows:
                continue
            same_rows.add(place)
            used = {**kept, **{key: as_reported(row[key]) for key in moving}}
            same = (name, noarch, frozenset(used.items()))
            if same in same_values:
                continue
            same_values.add(same)
            for variables, space in variants.of(name, noarch, used, siblings):
                yield OutlinedOutput(name, noarch, variants.first_of(space), space, variables)


class _Engine:
    """Renderings of the first variant of each shape."""

    def __init__(
        self, recipe: ParsedV1, config: VariantConfig, platform: Platform, space: VariantSpace, named: frozenset[str]
    ) -> None:
        """Start for the rows of the axes that have a key in `named`; of all others the first row counts."""
        self._recipe, self._platform = recipe, platform
        several = [axis for axis in space.axes if len(axis.rows) > 1]
        self._axes = [axis for axis in several if not named.isdisjoint(axis.keys)]
        self._fixed = frozenset(key for axis in several if axis not in self._axes for key in axis.keys)
        first = {key: value for axis in space.axes for key, value in zip(axis.keys, axis.rows[0], strict=True)}
        self._all = {**given_values(config, platform, platform), **{key: (value,) for key, value in first.items()}}
        self._given = {key: values for key, values in self._all.items() if key in named or _ALWAYS.fullmatch(key)}
        texts = {key: values[0] for key, values in self._all.items() if values}
        parts, looping = _parts_of(recipe.text), {key for axis in self._axes for key in axis.keys}
        self._shapes = _Shapes(parts, platform, texts, looping)
        self._skips = _Shapes(
            _Parts(parts.context, tuple(part for part in parts.parts if part.skips)), platform, texts, looping
        )
        self._built: dict[Hashable, bool] = {}
        self._texts = texts
        self._known: dict[Hashable, list[_Answer]] = {}

    def rows(self) -> Iterator[dict[str, str]]:
        """The values of each row that can make a difference."""
        if prod(len(axis.rows) for axis in self._axes) > most(MOST_VARIANTS):
            raise BoundError(f"the recipe loops over more than {MOST_VARIANTS} variants", path=self._recipe.path)
        keys = [key for axis in self._axes for key in axis.keys]
        for rows in product(*(axis.rows for axis in self._axes)):
            yield dict(zip(keys, (value for row in rows for value in row), strict=True))

    def answers(self, row: Mapping[str, str]) -> Sequence[_Answer]:
        """The outputs of the first row with the same shape."""
        values = ChainMap(dict(row), self._texts)
        shape = self._shapes.of(values)
        if shape not in self._known:
            inputs = {**self._given, **{key: (value,) for key, value in row.items()}}
            self._known[shape] = self._rendered(inputs) if self._is_built(inputs, self._skips.of(values)) else []
        return self._known[shape]

    def _is_built(self, inputs: Mapping[str, tuple[str, ...]], shape: Hashable) -> bool:
        if shape not in self._built:
            self._built[shape] = is_built(self._recipe, inputs, self._platform, self._platform)
        return self._built[shape]

    def _rendered(self, inputs: Mapping[str, tuple[str, ...]]) -> list[_Answer]:
        answers = []
        for rendering in render(self._recipe, inputs, (), self._platform, self._platform):
            recipe, reported = rendering.recipe, reported_values(rendering)
            read = {*reported, *_plain_names(recipe.requirements.to_dict())}
            missed = (read & self._all.keys() - inputs.keys()) | (read & self._fixed)
            if missed:
                raise _WiderError(missed)
            answers.append(_Answer(rendering, recipe, recipe.package.name, noarch_of(recipe), reported))
        return answers

    def report(self, watch: WatchV1, variants: InputVariants) -> bool:
        """Call `watch` once for each name; False if outputs of one name differ in more than their variants."""
        siblings: set[str] = set()
        described: dict[str, object] = {}
        for answer in (answer for answers in self._known.values() for answer in answers):
            name, noarch, content = answer.name, answer.noarch, answer.recipe.to_dict()
            about = (noarch, content.get("about"), content.get("extra"))
            if name in described:
                if described[name] != about:
                    return False
                continue
            described[name] = about
            siblings.add(key_of(name))
            used = own_values(answer.reported, noarch, siblings)
            variables, space = next(variants.of(name, noarch, used, siblings))
            watch(content, rendered_output(answer.rendering, answer.recipe, variables, space))
        return True


def _plain_names(requirements: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """The keys that requirements to build would use if they had values and the requirements no version."""
    for section in ("build", "host"):
        for item in requirements.get(section, ()):
            if isinstance(item, str) and item.strip():
                yield key_of(item.split()[0])


@dataclass(frozen=True, slots=True)
class _Part:
    """A text with a template or condition, and the words in it, those of the context that it refers to included."""

    text: str
    matters: _Matters
    skips: bool
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a recipe that can depend on a variant, and its own variables."""

    context: Mapping[str, ContextValue | None]
    parts: tuple[_Part, ...]


@lru_cache(maxsize=8)
def _parts_of(text: str) -> _Parts:
    """The parts of a `recipe.yaml` that can depend on a variant."""
    content = compose(text)
    context = context_of(content)
    mentioned: dict[str, frozenset[str]] = {}
    for name, value in context.items():  # each sees those before it
        mentioned[name] = _with_context(_words(value.text), mentioned) if value else frozenset()
    parts = dict.fromkeys(
        _Part(site.text, matters, "skip" in site.keys, _with_context(_words(site.text, matters), mentioned))
        for site in sites_of(content)
        if (matters := _matters(site)) == "truth" or site.kind == "key" or "${{" in site.text or "{%" in site.text
    )
    return _Parts(context, tuple(parts))


def _words(text: str, matters: _Matters = "reads") -> frozenset[str]:
    """The words in the templates of a text; all words of a condition, and of a text with statements."""
    is_code = matters == "truth" or "{%" in text
    return frozenset(_IDENTIFIER.findall(text if is_code else " ".join(_TEMPLATE.findall(text))))


def _with_context(words: frozenset[str], context: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return words.union(*(context[word] for word in words if word in context))


def _matters(site: Site) -> _Matters:
    if site.kind == "key":
        return "text"
    if site.kind == "condition" or site.keys[-1:] == ("skip",):
        return "truth"
    if site.keys[-2:] in _NAMES:
        return "name"
    if site.keys[-2:] in _TEXTS or not _WHOLE_TEXTS.isdisjoint(site.keys):
        return "text"
    return "reads"


class _Shapes:
    """The shape of each variant of a platform."""

    def __init__(self, sites: _Parts, platform: Platform, keys: Collection[str], looping: Collection[str]) -> None:
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

    def _effect(self, site: _Part, scope: Scope, seen: tuple[str, ...]) -> Hashable:
        try:
            if site.matters == "truth":
                return truth(site.text, scope), frozenset(scope.reads)
            found = pieces(site.text, scope)
        except UndecidedError:
            return "values", seen
        if site.matters == "reads":
            return frozenset(scope.reads)
        if site.matters == "name":
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
