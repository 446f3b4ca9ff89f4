"""The variant file that a person wrote beside a `recipe.yaml`: the values that it adds to a configuration.

rattler-build reads it below the file that `-m` names, so rendering and building a configuration read it here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.variants.model import VariantConfig
from feedstock_tools.variants.rules import CondaBuildRules

#: The variant files beside a recipe.yaml, of which rattler-build reads the first that exists.
_OWN_FILES = ("variants.yaml", "conda_build_config.yaml")
_WORD = re.compile(r"\w+")
#: Keys that a recipe uses by the name of a function: `c_compiler_version` by `compiler('c')`.
_BY_FUNCTION = re.compile(r"_(compiler|stdlib)(?:_version)?$|^(cdt)_")

#: Returns the keys that a recipe uses with some variants, and all those that it mentions.
_Used = Callable[[Configuration, VariantConfig], tuple[frozenset[str], frozenset[str]]]


def configured_variants(configuration: Configuration) -> VariantConfig:
    """The values of a configuration alone."""
    return VariantConfig(configuration.values, configuration.zip_keys, pin_run_as_build=configuration.pin_run_as_build)


def variants_of(folder: Path, configuration: Configuration, rules: CondaBuildRules | None = None) -> VariantConfig:
    """The values of a configuration, and those of the recipe's own variant file for keys that it lacks.

    rattler-build uses the own file's zip groups only if no other file has any (config.rs, merge); those whose keys
    a configuration has limited to fewer values than the rest are left out here.

    Args:
        folder: the folder of the `recipe.yaml`.

    Raises:
        InputError: the own file cannot be read.
    """
    configured = configured_variants(configuration)
    path = _own_file(folder)
    if path is None:
        return configured
    from feedstock_tools.variants.files import load, load_conditional

    read = load_conditional if path.name == _OWN_FILES[0] else load
    own = read(path, configuration.platform, rules=rules, within=folder)
    values = {**own.values, **configured.values}
    zipped = (group for group in own.zip_keys if len({len(values[key]) for key in group if key in values}) < 2)
    return replace(configured, values=values, zip_keys=configured.zip_keys or tuple(zipped))


def with_own_values(folder: Path, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Complete configurations: with the values that the recipe uses from its own variant file.

    Without a `recipe.yaml` they are returned unchanged. If the recipe cannot be rendered, all keys that it mentions
    count.

    Args:
        folder: the folder of the recipe.

    Raises:
        InputError: the recipe's own variant file cannot be read.
    """
    path = folder / "recipe.yaml"
    if _own_file(folder) is None or not path.is_file():
        return tuple(configurations)
    from feedstock_tools.reading import read_text

    words = frozenset(_WORD.findall(read_text(path, within=folder).replace("-", "_")))
    used = _used_by(folder)
    return tuple(
        _completed(configuration, variants_of(folder, configuration), words, used) for configuration in configurations
    )


def _own_file(folder: Path) -> Path | None:
    return next((folder / name for name in _OWN_FILES if (folder / name).is_file()), None)


def _completed(configuration: Configuration, both: VariantConfig, words: frozenset[str], used: _Used) -> Configuration:
    """A configuration with the keys of the own variant file that the recipe uses.

    Args:
        both: the values of the configuration, and those of the own file for other keys.
        words: all words of the recipe's text; a key that is not among them is unused, which saves a rendering.
    """
    configured = configuration.values
    candidates = [key for key in both.values if key not in configured and _may_use(key, words)]
    values = dict(configured)
    if candidates:
        try:
            used_keys, mentioned = used(configuration, both)
        except InputError:  # rendering the rows reports this; until then every key may count
            used_keys, mentioned = frozenset(candidates), frozenset()
        zipped = (group for group in both.zip_keys if not used_keys.union(configured).isdisjoint(group))
        looped = used_keys.union(*zipped)
        values |= {key: both.values[key] for key in candidates if key in looped}
        # A key that no built output uses either skips the outputs with each of its values or makes no difference.
        values |= {key: both.values[key][:1] for key in candidates if key in mentioned - looped}
    groups = (tuple(key for key in group if key in values) for group in both.zip_keys)
    return replace(configuration, values=values, zip_keys=configuration.zip_keys or tuple(filter(None, groups)))


def _may_use(key: str, words: frozenset[str]) -> bool:
    function = _BY_FUNCTION.search(key)
    return key.replace("-", "_") in words or (function is not None and (function[1] or function[2]) in words)


def _used_by(folder: Path) -> _Used:
    """Asks the engine, which reads the recipe on the first call."""
    from feedstock_tools.recipe.v1.recipe import render_recipe_v1
    from feedstock_tools.recipe.v1.variants import mentioned_variables
    from feedstock_tools.recipe.v1_engine import read_v1
    from feedstock_tools.yaml_reading.nodes import parse_texts

    recipe = cache(read_v1)

    def used(configuration: Configuration, both: VariantConfig) -> tuple[frozenset[str], frozenset[str]]:
        read = recipe(folder / "recipe.yaml")
        mentioned = mentioned_variables(parse_texts(read.text, read.path))
        outputs = render_recipe_v1(read, both, configuration.platform).outputs
        return _all(output.used.own for output in outputs), _all(mentioned.values())

    return used


def _all(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*parts)
