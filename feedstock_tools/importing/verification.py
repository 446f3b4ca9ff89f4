"""Checks whether the recipe that a spec generates makes the packages of the recipe that it was imported from.

Both are rendered in every configuration, by the renderers that a rerender uses, and the feedstock is rerendered with
both.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.file_names import CI_SUPPORT, FORGE_FILE
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.importing.rendered_texts import PARTS, texts_of_content, texts_of_meta
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import contents_with_rattler_build, packages_with_conda_build
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules

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
class Comparison:
    """A recipe compared with the one that its spec generates: the differences of the packages, and of their tests,
    scripts and descriptions; the configurations in which both were rendered; and the variant keys that each output of
    either uses in each configuration."""

    differences: tuple[Difference, ...]
    texts: tuple[Difference, ...]
    configurations: Mapping[str, Configuration]
    used: UsedKeys
    used_by_generated: UsedKeys


def compare(feedstock: Path, texts: Mapping[PurePosixPath, str], pinning: Path | None, rules: Rules) -> Comparison:
    """What the generated files of a feedstock change in its configurations and in what they render to.

    Args:
        texts: the generated files by their path.
        pinning: for both rerenders.

    Raises:
        InputError: the feedstock cannot be rendered as it is.
    """
    forge = read_forge(feedstock, rules)
    old = rerender(feedstock, pinning=pinning, rules=rules)
    recorded = read_configurations(feedstock)
    with temporary_folder() as folder:
        generated = _laid_out(feedstock, forge.recipe_dir, texts, folder)
        try:
            new = rerender(generated, pinning=pinning, rules=rules)
        except InputError as error:
            return Comparison((Difference("rerender", "the recipe", "valid", str(error)),), (), {}, {}, {})
        differences = list(_configurations(old.configurations, new.configurations))
        known = {configuration.name: configuration for configuration in (*old.configurations, *recorded)}
        before: UsedKeys = {}
        after: UsedKeys = {}
        for configuration in known.values():
            for builder in dict.fromkeys((configuration.platform, forge.builder_of(configuration.platform))):
                job = _Job(configuration, builder, rules)
                differences += _outputs((feedstock / forge.recipe_dir, before), (generated / "recipe", after), job)
    distinct = dict.fromkeys(differences)
    text_differences = tuple(difference for difference in distinct if difference.what.rpartition(", ")[2] in PARTS)
    return Comparison(
        tuple(difference for difference in distinct if difference not in text_differences),
        text_differences,
        known,
        before,
        after,
    )


@dataclass(frozen=True, slots=True)
class _Job:
    configuration: Configuration
    builder: Platform
    rules: Rules


def _laid_out(feedstock: Path, recipe: str, texts: Mapping[PurePosixPath, str], folder: Path) -> Path:
    """The feedstock with the generated files in place of its recipe."""
    copy = folder / feedstock.name
    old = shutil.ignore_patterns("meta.yaml", "recipe.yaml", "conda_build_config.yaml")
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


def _outputs(old_recipe: tuple[Path, UsedKeys], new_recipe: tuple[Path, UsedKeys], job: _Job) -> list[Difference]:
    configuration = job.configuration
    old = _meanings(*old_recipe, job)
    try:
        new = _meanings(*new_recipe, job)
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


def _meanings(recipe: Path, keys: UsedKeys, job: _Job) -> dict[str, list[dict[str, tuple[str, ...]]]]:
    """What each output of a recipe means, by its name."""
    configuration, builder, rules = job.configuration, job.builder, job.rules
    by_output: dict[str, list[dict[str, tuple[str, ...]]]] = {}
    if (recipe / "recipe.yaml").is_file():
        for content, output in contents_with_rattler_build(recipe, configuration, builder, rules):
            requirements = content.get("requirements", {})
            _add_meaning(by_output, output, requirements, requirements.get("run_exports"), texts_of_content(content))
            _record_keys(keys, configuration, output)
    else:
        packages = packages_with_conda_build(recipe, configuration, builder, rules, keep_pins=True)
        for meta, output in packages:
            exports = meta.section("build").get("run_exports")
            _add_meaning(by_output, output, output.requirements, exports, texts_of_meta(meta))
            _record_keys(keys, configuration, output)
    return by_output


def _record_keys(keys: UsedKeys, configuration: Configuration, output: RenderedOutput) -> None:
    own, above = keys.get((output.name, configuration.name), (frozenset(), frozenset()))
    keys[output.name, configuration.name] = own | output.used.own, above | output.used.top_level


def _add_meaning(
    by_output: dict[str, list[dict[str, tuple[str, ...]]]],
    output: RenderedOutput,
    requirements: Mapping[str, Any],
    exports: Any,
    texts: Mapping[str, tuple[str, ...]],
) -> None:
    by_kind = exports if isinstance(exports, Mapping) else {"weak": exports}
    meaning: dict[str, tuple[str, ...]] = {
        "version": (output.version,),
        "build number": (str(output.build_number),),
        "build string": (_HASH.sub("h", output.build_string),),
        "noarch": (str(output.noarch),),
    }
    lists = {section: items for section, items in requirements.items() if isinstance(items, list | tuple)}
    for section in ("build", "host", "run", "run_constrained", "run_constraints"):
        meaning[section] = _texts(lists.get(section, ()))
    for kind in ("weak", "strong", "noarch", "weak_constrains", "strong_constrains"):
        items = by_kind.get(kind) or by_kind.get(kind.replace("constrains", "constraints"))
        meaning[f"run exports, {kind}"] = _texts([items] if isinstance(items, str) else items or ())
    by_output.setdefault(output.name, []).append({**meaning, **texts})


def _texts(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted({" ".join(str(item).split()) for item in items}))


def _shown(values: Sequence[str] | None) -> str:
    return "" if not values else ", ".join(values)
