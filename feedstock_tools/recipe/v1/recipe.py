"""Render a `recipe.yaml` for all variants of a platform: by py-rattler-build, seen as conda-smithy sees it.

The engine reports the keys that an output uses; the output represents the input variants that agree with them
(rattler_build_conda_compat/render.py: render, get_used_vars, _reduce_variants).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, RenderedRecipe, UsedVariables
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.recipe.v1.variants import InputVariants, batches, mentioned_variables
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, is_built, render, text_of
from feedstock_tools.variants.model import Axis, VariantConfig, VariantSpace, explode
from feedstock_tools.yaml_reading.nodes import Node, compose, is_mapping, items, members, pairs, parse_texts

#: Called with each output and the rendered recipe that it was made from.
WatchV1 = Callable[[Mapping[str, Any], RenderedOutput], None]

_WORD = re.compile(r"\w+")
_PLATFORMS = ("target_platform", "build_platform")
#: More rows than any recipe of conda-forge reads.
_MOST_ROWS = 5_000
_SECTIONS = {name: of_model for of_model, name in SECTIONS.items()}


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
    """
    rendered = _rendered(recipe, config, platform, build_platform or platform, all_branches=all_branches)
    if watch is not None:
        for row, output in rendered:
            watch(row.recipe.to_dict(), output)
    return RenderedRecipe(tuple(output for _, output in rendered), explode(config), feedstock_name_of(recipe))


def unrendered_v1(recipe: ParsedV1, config: VariantConfig) -> tuple[Mapping[str, Any], RenderedOutput]:
    """What conda-smithy takes for the only output where the engine builds none: the recipe as it is loaded.

    It counts as built unless the top level has a `skip`, whatever that says (rattler_build_conda_compat/render.py).
    """
    from feedstock_tools.recipe.v1.loading import load_without_variants

    loaded = load_without_variants(recipe.text, recipe.path)
    names, build = loaded.get("recipe" if "outputs" in loaded else "package") or {}, loaded.get("build") or {}
    space, unused = explode(config), frozenset[str]()
    output = RenderedOutput(
        name=str(names.get("name", "")),
        version=str(names.get("version", "")),
        build_number=0,
        build_string=str(build.get("string", "unrendered_0")),
        noarch=build.get("noarch"),
        requirements={},
        variant=space.first(),
        variants=space,
        used=UsedVariables(unused, unused, unused),
        skip=bool(build.get("skip")),
    )
    return loaded, output


def render_with_contents_v1(
    recipe: ParsedV1, config: VariantConfig, platform: Platform, builder: Platform
) -> tuple[tuple[Mapping[str, Any], RenderedOutput], ...]:
    """As `render_recipe_v1`: each output with the content of the rendered recipe that it was made from."""
    return tuple((row.recipe.to_dict(), output) for row, output in _rendered(recipe, config, platform, builder))


def _rendered(
    recipe: ParsedV1, config: VariantConfig, platform: Platform, builder: Platform, *, all_branches: bool = False
) -> list[tuple[Rendering, RenderedOutput]]:
    values = given_values(config, platform, builder)
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
    return list(outputs_of(rows, input_variants(recipe, config, explode(config), all_branches=all_branches)))


def input_variants(
    recipe: ParsedV1, config: VariantConfig, space: VariantSpace, *, all_branches: bool
) -> InputVariants:
    """The variants of a platform; each output represents some of them. `all_branches` as for `render_recipe_v1`."""
    mentioned = mentioned_variables(parse_texts(recipe.text, recipe.path)) if all_branches else {}
    return InputVariants(config, space, recipe.path, mentioned)


def given_values(config: VariantConfig, platform: Platform, builder: Platform) -> dict[str, tuple[str, ...]]:
    """All values that the engine receives."""
    return {
        **config.values,
        **{key: values for key, values in config.extended.items() if key not in config.values},
        "target_platform": (platform.subdir,),
        "build_platform": (builder.subdir,),
    }


def feedstock_name_of(recipe: ParsedV1) -> str:
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
    space = explode(config).along(looping)
    if space.count > most(_MOST_ROWS):
        raise BoundError(f"skip depends on more than {_MOST_ROWS} variants", path=recipe.path)
    built_by_values: dict[tuple[str, ...], bool] = {}
    built = []
    for variant in space:
        seen = tuple(variant[key] for key in looping)
        if seen not in built_by_values:
            own = {key: (value,) for key, value in zip(looping, seen, strict=True)}
            built_by_values[seen] = is_built(recipe, {**named, **own}, *platforms)
        if built_by_values[seen]:
            built.append(tuple(variant.values()))
    if not built:
        return None
    keys = tuple(key for axis in space.axes for key in axis.keys)
    return nothing if all(built_by_values.values()) else Axis(keys, tuple(built))


def outputs_of(rows: Iterable[Rendering], variants: InputVariants) -> Iterator[tuple[Rendering, RenderedOutput]]:
    """Each output of the engine's rows with the row that it was made from."""
    siblings: set[str] = set()
    seen = set()
    for row in rows:
        recipe = row.recipe
        name, noarch = recipe.package.name, noarch_of(recipe)
        siblings.add(key_of(name))
        used = own_values(reported_values(row), noarch, siblings)
        # Values that make no difference give the same output again.
        same = (name, str(recipe.build.string), frozenset(used.items()))
        if same in seen:
            continue
        seen.add(same)
        for variables, space in variants.of(name, noarch, used, siblings):
            yield row, rendered_output(row, recipe, variables, space)


def reported_values(row: Rendering) -> dict[str, str]:
    """The values that the engine says it used, by key."""
    return {key_of(name): text_of(value) for name, value in row.variant.items()}


def own_values(reported: Mapping[str, str], noarch: str | None, siblings: Collection[str]) -> dict[str, str]:
    """The reported values without those of siblings, and without the platform for noarch packages."""
    left_out = {*siblings, "target_platform"} if noarch else siblings
    return {key: value for key, value in reported.items() if key not in left_out}


def rendered_output(row: Rendering, recipe: Any, variables: UsedVariables, space: VariantSpace) -> RenderedOutput:
    """An output that uses `variables` and represents the variants `space`.

    Args:
        recipe: of the row; the engine returns a copy for each access.
    """
    return RenderedOutput(
        name=recipe.package.name,
        version=str(recipe.package.version),
        build_number=recipe.build.number or 0,
        build_string=str(recipe.build.string),
        noarch=noarch_of(recipe),
        requirements=requirements_of(row, recipe),
        variant=space.first(),
        variants=space,
        used=variables,
    )


def noarch_of(recipe: Any) -> str | None:
    """`python`, `generic`, or None for a package of one platform."""
    noarch = recipe.build.noarch
    return str(noarch) if noarch else None


def requirements_of(row: Rendering, recipe: Any) -> dict[str, tuple[str, ...]]:
    """Requirements by section as conda-build names them; an exact pin is written out, any other only by its package's
    name."""
    found = {}
    exact = {key_of(name): f"{pin.name} {pin.version} {pin.build_string}" for name, pin in row.pin_subpackages.items()}
    for section, written in recipe.requirements.to_dict().items():
        if section in _SECTIONS:
            found[_SECTIONS[section]] = tuple(_requirement(item, exact) for item in written)
    return found


def _requirement(item: Any, exact: Mapping[str, str]) -> str:
    if not isinstance(item, dict):
        return str(item)
    pin = next(iter(item.values()))
    name = str(pin["name"])
    return exact.get(key_of(name), name) if pin.get("exact") else name


def key_of(name: str) -> str:
    """The variant key of a package."""
    return name.replace("-", "_")


_KEPT = frozenset({"staging", "requirements", "source"})
_REQUIREMENTS = frozenset({"build", "host"})


def without_staging_builds(text: str, path: Path) -> str:
    """The recipe with blank lines in place of what an inheriting output does not get from a staging output.

    conda-smithy renders through rattler-build-conda-compat, which first gives the requirements of each staging output
    to the outputs that inherit from it, and its sources to those that have none, and then removes it (`outputs.py`,
    `flatten_staging_inheritance`). So variables that only its script, environment or other keys use do not count.

    All other lines stay where they are, so that messages name the right ones. A staging output in YAML's flow style
    (`{staging: …}`) is left alone.

    Args:
        path: the recipe, for messages.
    """
    if "staging" not in text:
        return text
    outputs = items(members(compose(text, path)).get("outputs"))
    keys = [members(output) for output in outputs]
    lines = text.split("\n")
    for output, known in zip(outputs, keys, strict=True):
        if "staging" in known and "package" not in known:
            has_heir = _has_heir_without_source(keys, known["staging"])
            _blank(lines, output, _KEPT if has_heir else _KEPT - {"source"})
            if "requirements" in known:
                _blank(lines, known["requirements"], _REQUIREMENTS)
    return "\n".join(lines)


def _has_heir_without_source(outputs: Collection[dict[str, Node]], staging: Node) -> bool:
    """Whether an output without source inherits from a staging output: `inherit: NAME`, `inherit: {from: NAME}`."""
    name = members(staging).get("name")
    heirs = [output["inherit"] for output in outputs if "inherit" in output and "source" not in output]
    named = (members(heir).get("from") if is_mapping(heir) else heir for heir in heirs)
    return name is not None and any(heir is not None and heir.value == name.value for heir in named)


def _blank(lines: list[str], mapping: Node, kept: Collection[str]) -> None:
    """Replace all keys of a mapping in block style but those in `kept`, with their values, by blank lines."""
    if getattr(mapping, "flow_style", False):
        return
    for (key, value), following in zip_longest(pairs(mapping), pairs(mapping)[1:]):
        if key.value in kept:
            continue
        first = key.start_mark.line
        end = following[0].start_mark.line if following else _line_after(value)
        lines[first] = lines[first][: key.start_mark.column].rstrip()
        lines[first + 1 : end] = [""] * (end - first - 1)


def _line_after(value: Node) -> int:
    """The number of lines before the first that does not belong to a node."""
    is_block = value.style in ("|", ">") if value.id == "scalar" else not getattr(value, "flow_style", False)
    line: int = value.end_mark.line
    return line if is_block else line + 1
