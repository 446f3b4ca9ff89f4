"""An opened feedstock, for planning, building or inspecting: its folders, channels and engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.plan.plan import Plan
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.converting import Conversion, converted
from feedstock_tools.feedstock.folder import Feedstock, find_feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.names import select
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.feedstock.twin import has_meta_alone, recipe_to_build


@dataclass(frozen=True)
class Workspace:
    """A feedstock on disk, with the settings for its builds.

    Attributes:
        recipe: the `recipe.yaml` to build; for a feedstock with a `meta.yaml` it is generated from the same spec, or
            converted if no other engine can build it.
        channels: the given channels; none to use the configurations' own.
        machine: the environment of the machine.
        engines: determine the engine for a configuration.
        bounds: limits on reading the feedstock, which then happens in a child process; None to read it in this process.
        conversion: what became of a `meta.yaml` that was converted for the embedded engine.
    """

    feedstock: Feedstock
    artifacts: Artifacts
    recipe: Path
    channels: tuple[str, ...]
    machine: Mapping[str, str]
    engines: Engines
    bounds: Bounds | None = None
    conversion: Conversion | None = None

    @cached_property
    def plan(self) -> Plan:
        """The plan of the feedstock, from the cache if nothing has changed.

        Raises:
            InputError: the feedstock's configurations cannot be read.
        """
        return Plan(self.feedstock, self.artifacts, self.recipe, self.engines, self.bounds)

    def chosen(self, names: Sequence[str] = ()) -> tuple[PlannedConfiguration, ...]:
        """The configurations selected by names, with their outputs; all without a name.

        Raises:
            InputError: a name matches nothing, or the recipe cannot be read.
        """
        configurations = self.plan.configurations
        return self.plan.complete(select(names, configurations) if names else configurations)

    def apart(self, artifacts: Artifacts) -> Workspace:
        """The same with another artifacts folder, and the plan that this one has read."""
        made = replace(self, artifacts=artifacts)
        made.__dict__["plan"] = self.plan  # where `cached_property` looks
        return made

    def moved(self, feedstock: Feedstock, recipe: Path) -> Workspace:
        """The same for a copy of the feedstock with another recipe to build; the artifacts stay where they are."""
        engines = replace(self.engines, folder=feedstock.folder, recipe=recipe)
        return replace(self, feedstock=feedstock, recipe=recipe, engines=engines)


def open_workspace(
    folder: Path,
    output: Path | None,
    channels: Sequence[str],
    machine: Mapping[str, str],
    engine: str | None = None,
    bounds: Bounds | None = None,
) -> Workspace:
    """Open a feedstock. Writes only caches; call `refresh` first to update generated files.

    Args:
        folder: the folder of the feedstock.
        output: the folder of artifacts; default: `build_artifacts` in the feedstock.
        channels: names, URLs or folders; none to use those of the configurations.
        machine: the environment of the machine.
        engine: one of `ENGINES`, to use only that one.
        bounds: limits on reading the feedstock, which then happens in a child process; None to read it in this process.

    Raises:
        InputError: there is no feedstock, or the output folder is in its recipe folder.

    >>> opened = open_workspace(Path("tiny-feedstock"), None, ["conda-forge"], os.environ)
    >>> [each.cuda for each in opened.plan.configurations]
    ['11.2', None, None]
    """
    return workspace_of(find_feedstock(folder, folder), output, channels, machine, engine, bounds)


def workspace_of(
    feedstock: Feedstock,
    output: Path | None,
    channels: Sequence[str],
    machine: Mapping[str, str],
    engine: str | None,
    bounds: Bounds | None,
) -> Workspace:
    """Like `open_workspace`, for a feedstock that was found."""
    artifacts = artifacts_of(feedstock, output)
    recipe = recipe_to_build(feedstock, artifacts, engine)
    engines = Engines(feedstock.folder, recipe, machine, engine)
    conversion = None
    if has_meta_alone(feedstock) and not feedstock.spec.is_file() and engines.need_a_conversion:
        conversion = converted(feedstock, artifacts, bounds)
        recipe = conversion.recipe or recipe
        why = None if conversion.recipe else next(iter(conversion.lost), None)
        engines = replace(engines, recipe=recipe, why_unconverted=why)
    return Workspace(feedstock, artifacts, recipe, tuple(channels), machine, engines, bounds, conversion)


def artifacts_of(feedstock: Feedstock, output: Path | None) -> Artifacts:
    """The artifacts folder of a feedstock: its own `build_artifacts`, or another folder.

    Raises:
        InputError: the folder is among the inputs of the build.
    """
    artifacts = Artifacts((output or feedstock.artifacts).resolve())
    if artifacts.root.is_relative_to(feedstock.recipe):
        hint = "Choose another folder with --output-dir."
        raise InputError(
            "the artifacts folder cannot be inside the recipe folder or another input", path=output, hint=hint
        )
    return artifacts
