"""Render a `recipe.yaml` for all variants of a platform: by py-rattler-build, seen as conda-smithy sees it.

The engine reports the keys that an output uses; the output represents the input variants that agree with them
(rattler_build_conda_compat/render.py: render, get_used_vars, _reduce_variants).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, RenderedRecipe, UsedVariables
from feedstock_tools.recipe.v1.batches import batches
from feedstock_tools.recipe.v1.branches import mentioned_variables
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, is_built, render, text_of
from feedstock_tools.variants.model import Axis, VariantConfig, VariantSpace
from feedstock_tools.variants.space import explode
from feedstock_tools.yaml_reading.values import parse_texts

__all__ = ["WatchV1", "render_recipe_v1", "render_with_contents_v1"]

#: Called with each output and the rendered recipe that it was made from.
WatchV1 = Callable[[Mapping[str, Any], RenderedOutput], None]

_WORD = re.compile(r"\w+")
_PLATFORMS = ("target_platform", "build_platform")
#: More rows than any recipe of conda-forge reads.
_MOST_ROWS = 5_000
_SECTIONS = {"build": "build", "host": "host", "run": "run", "run_constraints": "run_constrained"}


def render_recipe_v1(
    recipe: ParsedV1,
    config: VariantConfig,
    platform: Platform,
    *,
    build_platform: Platform | None = None,
    all_branches: bool = False,
    watch: WatchV1 | None = None,
) -> RenderedRecipe:
    """The outputs of a recipe on a platform, in the engine's build order, without skipped ones.

    Args:
        config: the variants, built-in defaults included.
        build_platform: the platform that builds; default `platform`, as conda-smithy has it when it rerenders.
        watch: called with every output and its rendered recipe.
        all_branches: variables count as used in branches that are not taken, too, as with rattler-build until 0.57.

    Raises:
        InputError: the engine cannot render the recipe with these variants.
    """
    made = _rendered(recipe, config, platform, build_platform or platform, all_branches=all_branches)
    if watch is not None:
        for row, output in made:
            watch(row.recipe.to_dict(), output)
    return RenderedRecipe(tuple(output for _, output in made), explode(config), _feedstock_name(recipe))


def render_with_contents_v1(
    recipe: ParsedV1, config: VariantConfig, platform: Platform, builder: Platform
) -> tuple[tuple[Mapping[str, Any], RenderedOutput], ...]:
    """As `render_recipe_v1`: each output with the content of the rendered recipe that it was made from."""
    return tuple((row.recipe.to_dict(), output) for row, output in _rendered(recipe, config, platform, builder))


def _rendered(
    recipe: ParsedV1, config: VariantConfig, platform: Platform, builder: Platform, *, all_branches: bool = False
) -> list[tuple[Rendering, RenderedOutput]]:
    values = {
        **config.values,
        **{key: values for key, values in config.extended.items() if key not in config.values},
        "target_platform": (platform.subdir,),
        "build_platform": (builder.subdir,),
    }
    built = _built_rows(recipe, values, config, (platform, builder))
    if built is None:
        return []
    groups = (built.keys, *(group for group in config.zip_keys if group[0] not in built.keys))
    chosen = {**values, **{key: built.column(key) for key in built.keys}}
    zipped = [group for group in groups if len(group) > 1]
    rows = [
        row
        for part in batches(recipe.text, chosen, zipped, recipe.path)
        for row in render(recipe, part, zipped, platform, builder)
    ]
    mentioned = mentioned_variables(parse_texts(recipe.text, recipe.path)) if all_branches else {}
    return list(_Outputs(config, recipe.path, mentioned).of(rows))


def _feedstock_name(recipe: ParsedV1) -> str:
    """conda-smithy reads the package's name from a place that a v1 recipe lacks, and names the feedstock "None"."""
    extra = recipe.stage0.to_dict().get("extra") or {}
    return str(extra.get("feedstock-name") or None)


def _built_rows(
    recipe: ParsedV1, values: Mapping[str, tuple[str, ...]], config: VariantConfig, platforms: tuple[Platform, Platform]
) -> Axis | None:
    """The built rows of the variables in `skip`, as one axis (empty if it reads none); None: no row is built.

    Rendering only these is much faster than rendering all rows and dropping most.
    """
    nothing = Axis((), ())
    if recipe.probe is None:
        return nothing
    # A template cannot read a variable that it does not name.
    words = frozenset(_WORD.findall(str(recipe.probe.to_dict())))
    named = {key: items for key, items in values.items() if key in words or key in _PLATFORMS}
    looping = [key for key in named if key in config.values and len(set(named[key])) > 1]
    space = explode(config).project(looping)
    if space.count > most(_MOST_ROWS):
        raise BoundError(f"skip depends on more than {_MOST_ROWS} variants", path=recipe.path)
    known: dict[tuple[str, ...], bool] = {}
    built = []
    for variant in space:
        seen = tuple(variant[key] for key in looping)
        if seen not in known:
            own = {key: (value,) for key, value in zip(looping, seen, strict=True)}
            known[seen] = is_built(recipe, {**named, **own}, *platforms)
        if known[seen]:
            built.append(tuple(variant.values()))
    if not built:
        return None
    keys = tuple(key for axis in space.axes for key in axis.keys)
    return nothing if all(known.values()) else Axis(keys, tuple(built))


class _Outputs:
    """Turns the engine's rows into outputs; common parts of rows are created once."""

    def __init__(self, config: VariantConfig, path: Path, mentioned: Mapping[str | None, frozenset[str]]) -> None:
        self.path = path
        self.mentioned = mentioned
        zipped = frozenset(key for group in config.zip_keys for key in group)
        self.zipped = [axis for axis in explode(config).axes if axis.keys[0] in zipped]
        self.values = config.values
        self.free = {key: values for key, values in config.values.items() if key not in zipped and values}
        self.looping = frozenset(key for key, values in config.values.items() if len(set(values)) > 1)
        self._spaces: dict[tuple[tuple[tuple[str, str], ...], frozenset[str]], VariantSpace] = {}

    def of(self, rows: list[Rendering]) -> Iterator[tuple[Rendering, RenderedOutput]]:
        """Each output with the row that it was made from."""
        siblings: set[str] = set()
        seen = set()
        for row in rows:
            siblings.add(_key(row.recipe.package.name))
            used = self._used(row, siblings)
            # Values that make no difference give the same output again.
            same = (row.recipe.package.name, str(row.recipe.build.string), frozenset(used.items()))
            if same in seen:
                continue
            seen.add(same)
            unseen = self._unseen(row, siblings).difference(used)
            space = self._space(used, unseen, row.recipe.package.name)
            for chosen in self._choices(space, unseen & self.looping):
                yield row, self._output(row, frozenset(used) | unseen, space.where(chosen) if chosen else space)

    def _used(self, row: Rendering, siblings: set[str]) -> dict[str, str]:
        """The keys that the engine reports, without siblings, and without the platform for noarch packages."""
        used = {_key(name): text_of(value) for name, value in row.variant.items()}
        left_out = siblings | ({"target_platform"} if row.recipe.build.noarch else set())
        return {key: value for key, value in used.items() if key not in left_out}

    def _unseen(self, row: Rendering, siblings: set[str]) -> frozenset[str]:
        """The keys that the recipe mentions, for versions of the engine that counted them all."""
        named = self.mentioned.get(row.recipe.package.name, self.mentioned.get(None, frozenset()))
        noarch_python = {"python"} if row.recipe.build.noarch == "python" else set()
        return frozenset(key for key in named if key in self.values and key not in siblings | noarch_python)

    def _choices(self, space: VariantSpace, keys: frozenset[str]) -> list[dict[str, tuple[str, ...]]]:
        if not keys:
            return [{}]
        rows = {tuple((key, row[key]) for key in sorted(keys)): None for row in space.project(keys)}
        return [{key: (value,) for key, value in row} for row in rows]

    def _output(self, row: Rendering, keys: frozenset[str], space: VariantSpace) -> RenderedOutput:
        recipe = row.recipe
        looped = keys & self.looping
        return RenderedOutput(
            name=recipe.package.name,
            version=str(recipe.package.version),
            build_number=recipe.build.number or 0,
            build_string=str(recipe.build.string),
            noarch=str(recipe.build.noarch) if recipe.build.noarch else None,
            requirements=_requirements(row),
            variant=space.first(),
            variants=space,
            used=UsedVariables(keys, looped, keys, looped),
        )

    def _space(self, used: Mapping[str, str], whole: frozenset[str], name: str) -> VariantSpace:
        """The input variants that agree with `used`.

        Keys in `whole` and zip groups keep all values that agree; for any other key the first value counts.
        """
        wanted = (tuple(sorted((key, value) for key, value in used.items() if key in self.values)), whole)
        if wanted not in self._spaces:
            axes = [_agreeing(axis, used) for axis in self.zipped]
            for key, values in self.free.items():
                some = [one for one in values if one == used.get(key, one)]
                axes.append(Axis((key,), tuple((one,) for one in (some if key in whole else some[:1]))))
            if not all(axis.rows for axis in axes):
                raise InputError(
                    f"no variant has the values with which the engine reports to have rendered '{name}'", path=self.path
                )
            self._spaces[wanted] = VariantSpace(tuple(axes))
        return self._spaces[wanted]


def _agreeing(axis: Axis, used: Mapping[str, str]) -> Axis:
    """The rows of an axis that have the values of `used`."""
    wanted = [(place, used[key]) for place, key in enumerate(axis.keys) if key in used]
    return Axis(axis.keys, tuple(row for row in axis.rows if all(row[place] == value for place, value in wanted)))


def _requirements(row: Rendering) -> dict[str, tuple[str, ...]]:
    """Requirements by section as conda-build names them; an exact pin is written out, any other only by its package's
    name."""
    found = {}
    exact = {_key(name): f"{pin.name} {pin.version} {pin.build_string}" for name, pin in row.pin_subpackages.items()}
    for section, items in row.recipe.requirements.to_dict().items():
        if section in _SECTIONS:
            found[_SECTIONS[section]] = tuple(_requirement(item, exact) for item in items)
    return found


def _requirement(item: Any, exact: Mapping[str, str]) -> str:
    if not isinstance(item, dict):
        return str(item)
    pin = next(iter(item.values()))
    name = str(pin["name"])
    return exact.get(_key(name), name) if pin.get("exact") else name


def _key(name: str) -> str:
    return name.replace("-", "_")
