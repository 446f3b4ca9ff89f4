"""Variant keys that a recipe uses without a trace in its packages: a comparison with the generated recipe finds them.

A key counts as used wherever its name stands in the text, even in a branch that is never taken, and a used key is part
of a configuration and of the hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from feedstock_tools.conditions.spec import Setting, holds
from feedstock_tools.conditions.tree import And, Condition, Name
from feedstock_tools.importing.content import Content
from feedstock_tools.importing.entries import conditional
from feedstock_tools.importing.verification import Comparison, UsedKeys
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.configuration import Configuration


@dataclass(frozen=True, slots=True)
class _Split:
    """The configurations in which a key is missing, and those in which it must be absent."""

    missing: frozenset[str]
    never: frozenset[str]


def with_used_keys(recipe: Content, comparison: Comparison) -> Content:
    """The content with the keys that the recipe uses and the generated one does not."""
    content = dict(recipe.content)
    own = _splits(comparison.used, comparison.used_by_generated, 0)
    content["outputs"] = [
        _with_keys(output, "use_keys", own.get(output["name"], {}), comparison.configurations)
        for output in content["outputs"]
    ]
    above: dict[str, list[_Split]] = {}
    for output, splits in _splits(comparison.used, comparison.used_by_generated, 1).items():
        for key, split in splits.items():
            if key not in own.get(output, {}):
                above.setdefault(key, []).append(split)
    top = {
        key: _Split(
            frozenset().union(*(split.missing for split in splits)),
            frozenset.intersection(*(split.never for split in splits)),
        )
        for key, splits in above.items()
    }
    content["build"] = _with_keys(content.get("build") or {}, "use_keys", top, comparison.configurations)
    return replace(recipe, content=content)


def with_ignored_keys(recipe: Content, comparison: Comparison) -> Content:
    """The content without the keys that only the generated recipe uses."""
    own = _splits(comparison.used_by_generated, comparison.used, 0)
    outputs = [
        _with_keys(output, "ignore_keys", own.get(output["name"], {}), comparison.configurations)
        for output in recipe.content["outputs"]
    ]
    return replace(recipe, content={**recipe.content, "outputs": outputs})


def _splits(used: UsedKeys, other: UsedKeys, level: int) -> dict[str, dict[str, _Split]]:
    """By output and key: the configurations where only `used` has the key, and those where `used` lacks it.

    `level` is 0 for the keys of the output alone, 1 for those with the recipe's top level.
    """
    by_output: dict[str, dict[str, _Split]] = {}
    nothing: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
    for output in dict.fromkeys(name for name, _ in used):
        configurations = [configuration for name, configuration in used if name == output]
        missing: dict[str, set[str]] = {}
        for configuration in configurations:
            for key in used[output, configuration][level] - other.get((output, configuration), nothing)[level]:
                missing.setdefault(key, set()).add(configuration)
        by_output[output] = {
            key: _Split(
                frozenset(places),
                frozenset(
                    configuration for configuration in configurations if key not in used[output, configuration][level]
                ),
            )
            for key, places in missing.items()
        }
    return by_output


def _with_keys(
    owner: Mapping[str, Any], name: str, splits: Mapping[str, _Split], configurations: Mapping[str, Configuration]
) -> dict[str, Any]:
    items = [*owner.get(name, [])]
    for key, split in sorted(splits.items()):
        items.append(conditional("key", key, _condition(split, configurations)))
    return {**owner, name: items} if items else dict(owner)


def _condition(split: _Split, configurations: Mapping[str, Configuration]) -> Condition | None:
    """The simplest condition that holds wherever the key is missing, and nowhere that it must be absent."""
    needed = [_setting(configurations[name]) for name in split.missing]
    others = [_setting(configurations[name]) for name in split.never]
    for condition in _candidates(needed):
        if all(holds(condition, setting) for setting in needed) and not any(
            holds(condition, setting) for setting in others
        ):
            return condition
    return None


def _candidates(settings: list[Setting]) -> Iterator[Condition | None]:
    yield None
    words = [Name(word) for word in ("linux", "osx", "win", "unix", "cuda", "cpu")]
    subdirs = [Name(subdir) for subdir in sorted({setting.platform.subdir for setting in settings})]
    yield from (*words, *subdirs)
    yield from (And((word, other)) for word in (*words[:4], *subdirs) for other in words[4:])


def _setting(configuration: Configuration) -> Setting:
    platform: Platform = configuration.platform
    cuda = configuration.values.get("cuda_compiler_version", ("None",))[0]
    return Setting(platform, platform, None if cuda in ("None", "") else cuda)
