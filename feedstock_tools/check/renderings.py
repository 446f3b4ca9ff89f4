"""The jobs of a feedstock as they render, each once, whoever asks for them: comparisons, checks, lint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.feedstock.configurations import short_names
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.packages import Package
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rules import Rules


@dataclass(frozen=True, slots=True)
class Job:
    """A configuration, and the packages that it builds in build order; none, with the error, if it cannot be
    rendered."""

    configuration: Configuration
    packages: tuple[Package, ...] = ()
    error: FeedstockError | None = None
    #: Its short name.
    title: str = ""

    @property
    def name(self) -> str:
        return self.configuration.name

    @property
    def platform(self) -> Platform:
        return self.configuration.platform


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
        self._known: dict[tuple[str, str], Job] = {}

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """The given configurations, else those in `.ci_support`; raises `InputError` if one is invalid."""
        return tuple(read_configurations(self.feedstock) if self._given is None else self._given)

    @cached_property
    def titles(self) -> dict[str, str]:
        """The short names of the configurations, by name; empty if one of them is invalid."""
        try:
            return short_names(self.feedstock, self.configurations)
        except InputError:
            return {}

    @cached_property
    def forge(self) -> Forge:
        """The feedstock's conda-forge.yml; raises `InputError` if it is invalid."""
        return read_forge(self.feedstock, self.rules)

    @property
    def recipe_folder(self) -> Path:
        return self.forge.folder / self.forge.recipe_dir

    def job(self, configuration: Configuration) -> Job:
        key = configuration.name, repr(sorted(configuration.values.items()))
        if key not in self._known:
            title = self.titles.get(configuration.name, configuration.name)
            try:
                builder = self.forge.builder_of(configuration.platform)
                folder, v1 = self.recipe_folder, self.forge.is_v1
                packages = packages_of(folder, configuration, builder, self.rules, v1=v1)
                self._known[key] = Job(configuration, packages, title=title)
            except FeedstockError as error:
                self._known[key] = Job(configuration, error=error, title=title)
        return self._known[key]

    def packages(self, configuration: Configuration) -> tuple[Package, ...]:
        """The packages that a configuration builds, in build order.

        Raises:
            InputError: the recipe cannot be read or rendered.
        """
        job = self.job(configuration)
        if job.error is not None:
            raise job.error
        return job.packages
