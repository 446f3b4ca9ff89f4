"""Checks whether the recipe that a spec generates makes the packages of the recipe that it was imported from.

Both are rendered in every configuration, by the renderers that a rerender uses, and the feedstock is rerendered with
both. The comparison also finds variant keys that a recipe uses without a trace in its packages: a key counts as used
wherever its name stands in the text, even in a branch that is never taken, and a used key is part of a configuration
and of the hash.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.conditions.spec import Setting, holds
from feedstock_tools.conditions.tree import And, Condition, Name
from feedstock_tools.errors import InputError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.importing.content import Content
from feedstock_tools.importing.output_content import conditional
from feedstock_tools.importing.samples import setting_of
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT, FORGE_FILE
from feedstock_tools.recipe.packages import EXPORTS, Package
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules

#: The parts whose lines are texts.
_PARTS = ("tests", "script", "about")
#: A script may be named without its ending, which follows from the platform.
_ENDING = re.compile(r"\.(sh|bat)$")


def _script(value: Any) -> Iterator[str]:
    """The lines of a script in order, without blank ones; other keys than its content by their names."""
    if isinstance(value, Mapping):
        file = str(value.get("file") or "")
        yield from [_ENDING.sub("", file)] if file else _script(value.get("content"))
        usual = {"content", "file", *(["interpreter"] if _ENDING.search(file) else [])}
        yield from _lines({key: item for key, item in value.items() if key not in usual})
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _script(item)
    elif value is not None:
        yield from (_ENDING.sub("", line.rstrip()) for line in str(value).splitlines() if line.strip())


def _lines(value: Any, place: str = "") -> Iterator[str]:
    """Nested values as lines `place: text`; empty ones give no line."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _lines(child, f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _lines(item, place)
    elif value not in (None, ""):
        for line in str(value).splitlines():
            if line.strip():
                yield f"{place}: {' '.join(line.split())}"


_HASH = re.compile(r"h[0-9a-f]{7}(?=_|$|\W)")
#: Name of an output and of a configuration → the keys that the output uses itself, and with the recipe's top level.
UsedKeys = dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in one configuration, or a configuration that only one recipe has: what differs, and its text in the
    recipe and in the generated one."""

    where: str
    what: str
    written: str
    generated: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.written or 'nothing'} became {self.generated or 'nothing'}"


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A recipe compared with the one that its spec generates: the differences of the packages, and of their tests,
    scripts and descriptions; the configurations in which both were rendered; and the variant keys that each output of
    either uses in each configuration."""

    differences: tuple[Difference, ...]
    texts: tuple[Difference, ...]
    configurations: Mapping[str, Configuration]
    used: UsedKeys
    used_by_generated: UsedKeys


def compare(feedstock: Path, texts: Mapping[PurePosixPath, str], pinning: Path | None, rules: Rules) -> _Comparison:
    """What the generated files of a feedstock change in its configurations and in what they render to."""
    forge = read_forge(feedstock, rules)
    old = rerender(feedstock, pinning=pinning, rules=rules)
    recorded = read_configurations(feedstock)
    with temporary_folder() as folder:
        generated = laid_out(feedstock, forge.recipe_dir, texts, folder)
        try:
            new = rerender(generated, pinning=pinning, rules=rules)
        except InputError as error:
            return _Comparison((Difference("rerender", "the recipe", "valid", str(error)),), (), {}, {}, {})
        differences = list(_configurations(old.configurations, new.configurations))
        known = {configuration.name: configuration for configuration in (*old.configurations, *recorded)}
        before, after = _Recipe(feedstock / forge.recipe_dir, rules), _Recipe(generated / "recipe", rules)
        for configuration in known.values():
            for builder in dict.fromkeys((configuration.platform, forge.builder_of(configuration.platform))):
                differences += _outputs(before, after, configuration, builder)
    distinct = dict.fromkeys(differences)
    text_differences = tuple(difference for difference in distinct if difference.what.rpartition(", ")[2] in _PARTS)
    others = tuple(difference for difference in distinct if difference not in text_differences)
    return _Comparison(others, text_differences, known, before.used, after.used)


_Meaning = dict[str, tuple[str, ...]]


@dataclass
class _Recipe:
    """One of the two recipes, and the keys that its outputs use where they were rendered."""

    folder: Path
    rules: Rules
    used: UsedKeys = field(default_factory=dict)

    def meanings(self, configuration: Configuration, builder: Platform) -> dict[str, list[_Meaning]]:
        """What each output means, by its name."""
        by_output: dict[str, list[_Meaning]] = {}
        v1 = (self.folder / "recipe.yaml").is_file()
        for package in packages_of(self.folder, configuration, builder, self.rules, v1=v1):
            by_output.setdefault(package.name, []).append(_meaning(package, v1=v1))
            own, above = self.used.get((package.name, configuration.name), (frozenset(), frozenset()))
            used = package.output.used
            self.used[package.name, configuration.name] = own | used.own, above | used.top_level
        return by_output


def laid_out(feedstock: Path, recipe: str, texts: Mapping[PurePosixPath, str], folder: Path) -> Path:
    """The feedstock with the generated files in place of its recipe."""
    copy = folder / feedstock.name
    old = shutil.ignore_patterns("meta.yaml", "recipe.yaml", "conda_build_config.yaml")
    copy.mkdir()
    if (feedstock / recipe).is_dir():
        shutil.copytree(feedstock / recipe, copy / "recipe", ignore=old, symlinks=True)
    if (feedstock / CI_SUPPORT).is_dir():
        shutil.copytree(feedstock / CI_SUPPORT, copy / CI_SUPPORT, symlinks=True)
    if (feedstock / FORGE_FILE).is_file():
        shutil.copy(feedstock / FORGE_FILE, copy / FORGE_FILE)
    for path, text in texts.items():
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return copy


def _configurations(old: Iterable[Configuration], new: Iterable[Configuration]) -> Iterable[Difference]:
    before = {configuration.name: configuration for configuration in old}
    after = {configuration.name: configuration for configuration in new}
    for name in sorted(before.keys() - after.keys()):
        yield Difference(name, "the configuration", "there", "")
    for name in sorted(after.keys() - before.keys()):
        yield Difference(name, "the configuration", "", "there")
    for name in sorted(before.keys() & after.keys()):
        old_values, new_values = before[name].values, after[name].values
        for key in sorted(old_values.keys() | new_values.keys()):
            if old_values.get(key) != new_values.get(key):
                yield Difference(name, f"the key {key}", _shown(old_values.get(key)), _shown(new_values.get(key)))


def _outputs(before: _Recipe, after: _Recipe, configuration: Configuration, builder: Platform) -> list[Difference]:
    old = before.meanings(configuration, builder)
    try:
        new = after.meanings(configuration, builder)
    except InputError as error:
        return [Difference(configuration.name, "the recipe", "valid", str(error))]
    differences = []
    for name in dict.fromkeys((*old, *new)):
        old_meanings, new_meanings = old.get(name, []), new.get(name, [])
        removed = [meaning for meaning in old_meanings if meaning not in new_meanings]
        created = [meaning for meaning in new_meanings if meaning not in old_meanings]
        if not removed and not created:
            continue
        if not (removed and created):
            differences.append(
                Difference(configuration.name, f"output {name}", str(len(old_meanings)), str(len(new_meanings)))
            )
            continue
        for part in removed[0]:
            if removed[0][part] != created[0][part]:
                lost = sorted(set(removed[0][part]) - set(created[0][part]))
                added = sorted(set(created[0][part]) - set(removed[0][part]))
                differences.append(Difference(configuration.name, f"{name}, {part}", _shown(lost), _shown(added)))
    return differences


def _meaning(package: Package, *, v1: bool) -> _Meaning:
    output = package.output
    meaning: _Meaning = {
        "version": (output.version,),
        "build number": (str(output.build_number),),
        "build string": (_HASH.sub("h", output.build_string),),
        "noarch": (str(output.noarch),),
    }
    for section, of_v1 in SECTIONS.items():
        meaning[of_v1 if v1 else section] = _texts(package.sections.get(section, ()))
    for kind in EXPORTS:
        meaning[f"run exports, {kind}"] = _texts(package.exports.get(kind, ()))
    tests, about = (tuple(sorted(_lines(value))) for value in (package.tests, package.about))
    return {**meaning, "tests": tests, "script": tuple(_script(package.scripts[-1])), "about": about}


def _texts(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted({" ".join(str(item).split()) for item in items}))


def _shown(values: Sequence[str] | None) -> str:
    return "" if not values else ", ".join(values)


@dataclass(frozen=True, slots=True)
class _Split:
    """The configurations in which a key is missing, and those in which it must be absent."""

    missing: frozenset[str]
    never: frozenset[str]


def with_used_keys(recipe: Content, comparison: _Comparison) -> Content:
    """The content with the keys that the recipe uses and the generated one does not."""
    own = _splits(comparison.used, comparison.used_by_generated, 0)
    content = _with_outputs(recipe.content, "use_keys", own, comparison)
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


def with_ignored_keys(recipe: Content, comparison: _Comparison) -> Content:
    """The content without the keys that only the generated recipe uses."""
    own = _splits(comparison.used_by_generated, comparison.used, 0)
    return replace(recipe, content=_with_outputs(recipe.content, "ignore_keys", own, comparison))


def _with_outputs(
    content: Mapping[str, Any], name: str, own: Mapping[str, Mapping[str, _Split]], comparison: _Comparison
) -> dict[str, Any]:
    outputs = [
        _with_keys(output, name, own.get(output["name"], {}), comparison.configurations)
        for output in content["outputs"]
    ]
    return {**content, "outputs": outputs}


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
                frozenset(places), frozenset(each for each in configurations if key not in used[output, each][level])
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
    settings = {
        name: setting_of(
            {key: values[0] for key, values in each.values.items() if values}, each.platform, each.platform
        )
        for name, each in configurations.items()
    }
    needed, others = ([settings[name] for name in names] for names in (split.missing, split.never))
    for condition in _candidates(needed):
        if all(holds(condition, each) for each in needed) and not any(holds(condition, each) for each in others):
            return condition
    return None


def _candidates(settings: list[Setting]) -> Iterator[Condition | None]:
    yield None
    words = [Name(word) for word in ("linux", "osx", "win", "unix", "cuda", "cpu")]
    subdirs = [Name(subdir) for subdir in sorted({setting.platform.subdir for setting in settings})]
    yield from (*words, *subdirs)
    yield from (And((word, other)) for word in (*words[:4], *subdirs) for other in words[4:])
