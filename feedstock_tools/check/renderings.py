"""The jobs of a feedstock as they render, each once, whoever asks for them: comparisons, checks, lint; and what their
builds run: variables of the environment and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from feedstock_tools.check.demands import Demands, demands_of_content, demands_of_meta
from feedstock_tools.errors import FeedstockError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.requirements import Pin, requirement_of_text
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.recipe.v1.certain_values import UndecidedError
from feedstock_tools.recipe.v1.expressions import Scope, value_of
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.outputs import contents_with_rattler_build, packages_with_conda_build
from feedstock_tools.rerender.rules import Rules

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
#: What an output was made from: the package of a `meta.yaml`, or the content of a rendered `recipe.yaml`.
Source = Meta | Mapping[str, Any]


class Renderings:
    """A feedstock folder and what its configurations render to; files that change later are not read again.

    Args:
        feedstock: its folder.
        rules: which version of conda-build to follow; default the newest.
        configurations: those that a rerender makes; default: those in `.ci_support`.
    """

    def __init__(
        self, feedstock: Path, rules: Rules | None = None, configurations: Sequence[Configuration] | None = None
    ) -> None:
        self.feedstock = feedstock
        self.rules = rules or Rules.newest()
        self._given = configurations
        self._known: dict[tuple[str, str], tuple[tuple[Source, RenderedOutput], ...] | FeedstockError] = {}

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """The given configurations, else those in `.ci_support`; raises `InputError` if one is invalid."""
        return tuple(read_configurations(self.feedstock) if self._given is None else self._given)

    @cached_property
    def forge(self) -> Forge:
        """The feedstock's conda-forge.yml; raises `InputError` if it is invalid."""
        return read_forge(self.feedstock, self.rules)

    @property
    def recipe_folder(self) -> Path:
        """The folder of its recipe."""
        return self.forge.folder / self.forge.recipe_dir

    def packages(self, configuration: Configuration) -> tuple[tuple[Source, RenderedOutput], ...]:
        """Each output that a configuration renders to, in build order, with what it was made from.

        Pins in the requirements of a `meta.yaml`'s output are marked (`keep_pins` of `packages_with_conda_build`).

        Raises:
            InputError: the recipe cannot be read or rendered.
        """
        key = configuration.name, repr(sorted(configuration.values.items()))
        if key not in self._known:
            try:
                self._known[key] = self._rendered(configuration, self.forge.builder_of(configuration.platform))
            except FeedstockError as error:
                self._known[key] = error
        known = self._known[key]
        if isinstance(known, FeedstockError):
            raise known
        return known

    def demands(self, configuration: Configuration) -> tuple[tuple[RenderedOutput, Demands], ...]:
        """Each output that a configuration renders to with its requirements, in build order.

        Raises:
            InputError: the recipe cannot be read or rendered.
        """
        return tuple(
            (
                output,
                demands_of_meta(output, source, configuration)
                if isinstance(source, Meta)
                else demands_of_content(output, source),
            )
            for source, output in self.packages(configuration)
        )

    def _rendered(self, configuration: Configuration, builder: Platform) -> tuple[tuple[Source, RenderedOutput], ...]:
        if self.forge.is_v1:
            return contents_with_rattler_build(self.recipe_folder, configuration, builder, self.rules)
        return packages_with_conda_build(self.recipe_folder, configuration, builder, self.rules, keep_pins=True)


@dataclass(frozen=True, slots=True)
class Built:
    """An output, with the variables that the recipe sets for its build, the commands in the recipe itself (empty where
    the build runs a file), and whether the output has `track_features`."""

    output: RenderedOutput
    environment: Mapping[str, str]
    commands: str
    track_features: bool


def rendered(renderings: Renderings, configuration: Configuration) -> tuple[Built, ...]:
    """The outputs that a configuration builds; none of a recipe that cannot be rendered, which a rerender reports."""
    try:
        packages = renderings.packages(configuration)
    except FeedstockError:
        return ()
    built = (
        _built(source, output) if isinstance(source, Meta) else _built_v1(source, output, configuration.platform)
        for source, output in packages
    )
    return tuple(each for each in built if not each.output.skip)


def _built(meta: Meta, output: RenderedOutput) -> Built:
    build = meta.section("build")
    pairs = (text.partition("=") for text in _texts(build.get("script_env")) if "=" in text)
    environment = {name.strip(): value.strip() for name, _, value in pairs}
    named = replace(output, requirements={kind: _names(texts) for kind, texts in output.requirements.items()})
    return Built(named, environment, "\n".join(_texts(build.get("script"))), bool(build.get("track_features")))


def _names(requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements of a section, with the bare names of those that are pins."""
    read = (requirement_of_text(text) for text in requirements)
    return tuple(each.name if isinstance(each, Pin) else each for each in read)


def _built_v1(content: Mapping[str, Any], output: RenderedOutput, platform: Platform) -> Built:
    """The scripts of an output and of the caches that it may share with others (`staging`), their templates expanded,
    which rattler-build leaves to the build."""
    scope = Scope(platform, {}, output.variant)
    environment: dict[str, str] = {}
    commands: list[str] = []
    own = content.get("build") or {}
    caches = [cache.get("build") or {} for cache in content.get("staging_caches") or ()]
    for build in (*caches, own):
        script = build.get("script")
        if isinstance(script, Mapping):
            environment |= {name: _expanded(str(value), scope) for name, value in (script.get("env") or {}).items()}
            script = script.get("content")
        commands += [_expanded(command, scope) for command in _texts(script)]
    features = (own.get("variant") or {}).get("down_prioritize_variant") or own.get("track_features")
    return Built(output, environment, "\n".join(commands), bool(features))


def _expanded(text: str, scope: Scope) -> str:
    """A text with the values of its templates; those without a certain value stay."""

    def value(match: re.Match[str]) -> str:
        try:
            found = value_of(match[1], scope)
        except UndecidedError:
            return match[0]
        return str(found) if isinstance(found, str | int) else match[0]

    return _TEMPLATE.sub(value, text)


def _texts(value: object) -> Sequence[str]:
    """A text or a list of texts, as a list."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]
