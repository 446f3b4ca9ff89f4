"""A feedstock that is opened, to be planned, built or looked at: its folders, the channels given, the engines here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.plan.plan import Plan
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock, find_feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.names import select
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.feedstock.up_to_date import recipe_to_build

__all__ = ["Workspace", "artifacts_of", "open_workspace"]


@dataclass(frozen=True)
class Workspace:
    """A feedstock as it lies on the disk, with what decides how it would be built.

    Attributes:
        recipe: the `recipe.yaml` that is built; for a feedstock with a `meta.yaml` it is made from the same spec.
        channels: those that were given; none to use the configurations' own.
        machine: the environment of the machine.
        engines: decide which engine builds a configuration here.
    """

    feedstock: Feedstock
    artifacts: Artifacts
    recipe: Path
    channels: tuple[str, ...]
    machine: Mapping[str, str]
    engines: Engines

    @cached_property
    def plan(self) -> Plan:
        """What the feedstock would build, from the cache where nothing has changed since it was made.

        Raises:
            InputError: the feedstock's configurations cannot be read.
        """
        return Plan(self.feedstock, self.artifacts, self.recipe, self.engines)

    def chosen(self, names: Sequence[str] = ()) -> tuple[PlannedConfiguration, ...]:
        """The configurations that names mean, with their outputs; all configurations without a name.

        Raises:
            InputError: a name means nothing, or the recipe cannot be read.
        """
        known = self.plan.configurations
        return self.plan.complete(select(names, known) if names else known)


def open_workspace(
    folder: Path,
    output: Path | None,
    channels: Sequence[str],
    machine: Mapping[str, str],
    engine: str | None = None,
) -> Workspace:
    """Open a feedstock as it is. Nothing is written but caches; `refresh` brings what is generated up to date before.

    Args:
        folder: the feedstock's.
        output: the folder of artifacts; default: `build_artifacts` in the feedstock.
        channels: names, URLs or folders; none to use those of the configurations.
        machine: the environment of the machine.
        engine: one of `ENGINES`, to build with that one only.

    Raises:
        InputError: there is no feedstock, or the output folder lies in its recipe folder.

    >>> opened = open_workspace(Path("tiny-feedstock"), None, ["conda-forge"], os.environ)
    >>> [each.cuda for each in opened.plan.configurations]
    ['11.2', None, None]
    """
    feedstock = find_feedstock(folder, folder)
    artifacts = artifacts_of(feedstock, output)
    recipe = recipe_to_build(feedstock, artifacts, engine)
    engines = Engines(feedstock.folder, recipe, machine, engine)
    return Workspace(feedstock, artifacts, recipe, tuple(channels), machine, engines)


def artifacts_of(feedstock: Feedstock, output: Path | None) -> Artifacts:
    """Where a feedstock's builds go: its own `build_artifacts`, or another folder.

    Raises:
        InputError: the folder lies among the files that it is built from.
    """
    artifacts = Artifacts((output or feedstock.artifacts).resolve())
    if artifacts.root.is_relative_to(feedstock.recipe):
        hint = "Give one elsewhere with --output-dir."
        raise InputError("what is built cannot be kept among the files it is built from", path=output, hint=hint)
    return artifacts
