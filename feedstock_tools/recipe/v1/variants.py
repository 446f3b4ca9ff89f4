"""The variants of a `recipe.yaml`: the parts that are rendered on their own, and those that an output represents.

An output represents the input variants that agree with the values that it used (rattler_build_conda_compat/render.py:
get_used_vars, _reduce_variants). Until 0.57 rattler-build counted all variables that a recipe mentions as used, in
branches that are not taken too; since then those that rendering really read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.model import UsedVariables
from feedstock_tools.recipe.v1.templates import texts_of
from feedstock_tools.variants.model import Axis, Variant, VariantConfig, VariantSpace

if TYPE_CHECKING:
    from jinja2 import nodes

_WORD = re.compile(r"\w+")
_OPENING, _CLOSING = "${{", "}}"
#: Fewer variants render faster at once, and more parts than this take longer to hand over than to render.
_WORTH_CUTTING = 8
_MOST_BATCHES = 512
#: The same limit as for a meta.yaml; the engine needs gigabytes for more.
MOST_VARIANTS = 20_000


def batches(
    text: str, values: Mapping[str, Sequence[str]], groups: Sequence[Sequence[str]], path: Path | None = None
) -> Iterator[dict[str, Sequence[str]]]:
    """The values of each part that is rendered on its own; together, all variants of `values` and the zip `groups`.

    The engine's time grows with the square of the number of variants it renders at once: a recipe of 20 outputs that
    loops over 48 variants takes it minutes, and two seconds one by one. Parts have the order of the engine's own loop.
    Only keys that the recipe's `text` mentions are split: the engine loops over no others, except compilers.

    Raises:
        InputError: zipped keys have different numbers of values.
        BoundError: there are more than the limit.
    """
    words = set(_WORD.findall(text.replace("-", "_")))
    zipped = {key for group in groups for key in group}
    axes = [tuple(group) for group in groups] + [(key,) for key in values if key not in zipped]
    for group in groups:
        if len({len(values.get(key, ())) for key in group}) > 1:
            raise InputError(f"the zipped keys {', '.join(group)} have different numbers of values", path=path)
    named = sorted(axis for axis in axes if len(values.get(axis[0], ())) > 1 and words.intersection(axis))
    if prod(len(values[axis[0]]) for axis in named) > most(MOST_VARIANTS):
        raise BoundError(f"the recipe loops over more than {MOST_VARIANTS} variants", path=path)
    cut: list[tuple[str, ...]] = []
    count = 1
    for axis in named:
        if count * len(values[axis[0]]) <= _MOST_BATCHES:
            cut.append(axis)
            count *= len(values[axis[0]])
    if count <= _WORTH_CUTTING:
        yield dict(values)
        return
    for rows in product(*(range(len(values[axis[0]])) for axis in cut)):
        chosen = {key: (values[key][row],) for axis, row in zip(cut, rows, strict=True) for key in axis}
        yield {**values, **chosen}


class InputVariants:
    """The input variants of a platform; common parts are created once."""

    def __init__(
        self, config: VariantConfig, space: VariantSpace, path: Path, mentioned: Mapping[str | None, frozenset[str]]
    ) -> None:
        """Start for the variants `space` of `config`.

        Args:
            path: of the recipe, for messages.
            mentioned: the keys that each output mentions, for versions of the engine that counted them all; else empty.
        """
        self._path = path
        self._mentioned = mentioned
        zipped = frozenset(key for group in config.zip_keys for key in group)
        self._zipped = [axis for axis in space.axes if axis.keys[0] in zipped]
        self._values = config.values
        self._free = {key: values for key, values in config.values.items() if key not in zipped and values}
        self._first = {key: Axis((key,), (values[:1],)) for key, values in self._free.items()}
        self._place = {key: place for place, key in enumerate(self._free, len(self._zipped))}
        self._base = VariantSpace((*self._zipped, *self._first.values()))
        self._first_values = {key: values[0] for key, values in self._free.items()}
        self._looping = frozenset(key for key, values in config.values.items() if len(set(values)) > 1)
        self._spaces: dict[tuple[tuple[tuple[str, str], ...], frozenset[str]], VariantSpace] = {}

    def of(
        self, name: str, noarch: str | None, used: Mapping[str, str], siblings: Collection[str]
    ) -> Iterator[tuple[UsedVariables, VariantSpace]]:
        """The variables that an output uses and the variants that it represents.

        Args:
            used: the values that it was rendered with, by `own_values`.
            siblings: the names of packages of the same recipe.
        """
        unseen = self._unseen(name, noarch, siblings).difference(used)
        space = self._space(used, unseen, name)
        keys = frozenset(used) | unseen
        looped = keys & self._looping
        found = UsedVariables(keys, keys, looped)
        for chosen in _choices(space, unseen & self._looping):
            yield found, space.where(chosen) if chosen else space

    def first_of(self, space: VariantSpace) -> Variant:
        """The first variant of a space that `of` gave, as `VariantSpace.first` gives it."""
        axes = space.axes[: len(self._zipped)]
        changed = [axis for axis in space.axes[len(self._zipped) :] if axis is not self._first[axis.keys[0]]]
        first = dict(self._first_values)
        for axis in (*axes, *changed):
            first.update(zip(axis.keys, axis.rows[0], strict=True))
        return first

    def _unseen(self, name: str, noarch: str | None, siblings: Collection[str]) -> frozenset[str]:
        """The keys that the recipe mentions, for versions of the engine that counted them all."""
        named = self._mentioned.get(name, self._mentioned.get(None, frozenset()))
        left_out = {*siblings, "python"} if noarch == "python" else siblings
        return frozenset(key for key in named if key in self._values and key not in left_out)

    def _space(self, used: Mapping[str, str], whole: frozenset[str], name: str) -> VariantSpace:
        """The input variants that agree with `used`.

        Keys in `whole` and zip groups keep all values that agree; for any other key the first value counts.
        """
        wanted = (tuple(sorted((key, value) for key, value in used.items() if key in self._values)), whole)
        if wanted not in self._spaces:
            axes = {place: _agreeing(axis, used) for place, axis in enumerate(self._zipped)}
            for key in {*used, *whole} & self._free.keys():
                some = [candidate for candidate in self._free[key] if candidate == used.get(key, candidate)]
                axes[self._place[key]] = Axis(
                    (key,), tuple((candidate,) for candidate in (some if key in whole else some[:1]))
                )
            if not all(axis.rows for axis in axes.values()):
                raise InputError(
                    f"no variant has the values with which the engine reports to have rendered '{name}'",
                    path=self._path,
                )
            self._spaces[wanted] = self._base.with_axes(axes)
        return self._spaces[wanted]


def _agreeing(axis: Axis, used: Mapping[str, str]) -> Axis:
    """The rows of an axis that have the values of `used`."""
    wanted = [(place, used[key]) for place, key in enumerate(axis.keys) if key in used]
    return Axis(axis.keys, tuple(row for row in axis.rows if all(row[place] == value for place, value in wanted)))


def _choices(space: VariantSpace, keys: frozenset[str]) -> list[dict[str, tuple[str, ...]]]:
    if not keys:
        return [{}]
    rows = {tuple((key, row[key]) for key in sorted(keys)): None for row in space.along(keys)}
    return [{key: (value,) for key, value in row} for row in rows]


def mentioned_variables(recipe: Any) -> Mapping[str | None, frozenset[str]]:
    """The variables that each output mentions, the top level of the recipe included.

    The rules of rattler-build 0.54 (src/used_variables.rs) are followed, gaps included: attributes and items of
    variables do not count, nor arguments of most functions.

    Args:
        recipe: the recipe as plain YAML (all strings).

    Returns:
        output name -> variables; under None those of outputs whose name is a template, and of a recipe without outputs.
    """
    if not isinstance(recipe, dict):
        return {None: frozenset()}
    outputs = recipe.get("outputs")
    if not isinstance(outputs, list):
        return {None: frozenset(_in_part(recipe))}
    common = frozenset(_in_part({key: value for key, value in recipe.items() if key != "outputs"}))
    found: dict[str | None, frozenset[str]] = {None: common}
    for output in outputs:
        package = output.get("package") if isinstance(output, dict) else None
        name = package.get("name") if isinstance(package, dict) else None
        output_name = name if isinstance(name, str) and _OPENING not in name else None
        found[output_name] = found.get(output_name, common) | frozenset(_in_part(output))
    return found


def _in_part(part: Any) -> Iterator[str]:
    from feedstock_tools.recipe.v1.expressions import node_of  # loads Jinja, for rules of older versions alone

    for text in texts_of(part):
        for template in text.split(_OPENING)[1:]:
            expression, closed, _ = template.partition(_CLOSING)
            if closed:
                yield from _variables(node_of(expression))


def _variables(node: nodes.Node | None) -> Iterator[str]:
    from jinja2 import nodes

    parts: Sequence[nodes.Node | None] = ()
    match node:
        case nodes.Name():
            yield node.name
        case nodes.Test() | nodes.Filter() | nodes.UnaryExpr():
            parts = (node.node,)
        case nodes.BinExpr():
            parts = (node.left, node.right)
        case nodes.Concat():
            parts = node.nodes
        case nodes.Compare():
            parts = (node.expr, *(operand.expr for operand in node.ops))
        case nodes.CondExpr():
            parts = (node.test, node.expr1, node.expr2)
        case nodes.Call(node=nodes.Name(name=str(name))) if node.args:
            yield from _in_call(name, node.args)
    for part in parts:
        yield from _variables(part)


def _in_call(function: str, arguments: list[nodes.Expr]) -> Iterator[str]:
    from jinja2 import nodes

    first = arguments[0]
    if function in ("compiler", "stdlib"):
        if isinstance(first, nodes.Const):
            yield f"{first.value}_{function}"
            yield f"{first.value}_{function}_version"
    elif function == "cdt":
        yield from ("cdt_name", "cdt_arch")
    elif function in ("pin_subpackage", "pin_compatible"):
        yield from _variables(first)
    elif function == "match":
        for argument in arguments[:2]:
            yield from _variables(argument)
