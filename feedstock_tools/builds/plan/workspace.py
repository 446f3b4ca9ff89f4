"""An opened feedstock, for planning, building or inspecting: its folders, channels, engines, and its plan.

Rendering a recipe takes some milliseconds a row, so of many configurations only those to build or list are rendered,
and the results are cached until one of their inputs changes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.digests import stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock, find_feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow, select
from feedstock_tools.feedstock.up_to_date import Conversion, converted, has_meta_alone, own_stamp, recipe_to_build
from feedstock_tools.platforms import Platform

_CACHE = "plan"
#: Rows that are rendered although only some of them are requested: together they take less than a second process.
_FEW = 16


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
        """The configurations selected by names, with their outputs; all without a name."""
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
        why = next(iter(conversion.lost), None)
        if why and conversion.recipe and engine is None:
            more = f" (and {len(conversion.lost) - 1} more)" if len(conversion.lost) > 1 else ""
            why = f"it would lose {why}{more}; --engine rattler-build builds it without"
            conversion = replace(conversion, recipe=None)
        recipe, is_converted = conversion.recipe or recipe, conversion.recipe is not None
        engines = replace(engines, recipe=recipe, is_converted=is_converted, why_unconverted=why)
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


class Plan:
    """The configurations of a feedstock, which are rendered on demand.

    Attributes:
        began: when planning began, in nanoseconds.
    """

    def __init__(
        self, feedstock: Feedstock, artifacts: Artifacts, recipe: Path, engines: Engines, bounds: Bounds | None
    ) -> None:
        """Read the plan from the cache, or begin a new one.

        Args:
            recipe: the `recipe.yaml` to build.
            engines: determine the engine for a platform, which is part of an output's identity.
            bounds: what rendering may take, in a child process; None to render in this process.
        """
        self.began = time.time_ns()
        self._feedstock = feedstock
        self._artifacts = artifacts
        self._recipe = recipe
        self._engines = engines
        self._bounds = bounds
        self._known = self._recalled() or self._begun()

    @property
    def configurations(self) -> tuple[PlannedConfiguration, ...]:
        """All configurations, ordered by name; `complete` returns them with their outputs."""
        return tuple(self._known.configurations.values())

    @property
    def needs(self) -> Mapping[str, Any]:
        """The `needs` of the spec, by key; empty without a spec."""
        if self._known.needs is None:
            self._remember(replace(self._known, needs=_needs_of(self._feedstock)))
        return self._known.needs or {}

    @property
    def sources(self) -> tuple[Path, ...]:
        """The local sources of the completed configurations."""
        return tuple(sorted(self._known.sources))

    def complete(self, chosen: Sequence[PlannedConfiguration]) -> tuple[PlannedConfiguration, ...]:
        """The chosen configurations with their rows and outputs."""
        wanted = [self._known.configurations[configuration.name] for configuration in chosen]
        missing = [configuration for configuration in wanted if not configuration.rendered]
        if missing:
            rendered, sources = self._rendered(missing)
            configurations = {
                **self._known.configurations,
                **{configuration.name: configuration for configuration in rendered},
            }
            self._remember(replace(self._known, configurations=configurations), sources)
        return tuple(
            _with_rows(self._known.configurations[configuration.name], configuration.rows) for configuration in chosen
        )

    def _rendered(
        self, missing: Sequence[PlannedConfiguration]
    ) -> tuple[tuple[PlannedConfiguration, ...], AbstractSet[Path]]:
        """Some configurations with their outputs, and their local sources; all others with them, if those are few."""
        unknown = [configuration for configuration in self._known.configurations.values() if not configuration.rendered]
        if len(missing) < len(unknown) and sum(len(configuration.rows) for configuration in unknown) <= _FEW:
            with suppress(InputError):  # which the others may have caused
                return self._rendered_alone(unknown)
        return self._rendered_alone(missing)

    def _rendered_alone(
        self, wanted: Sequence[PlannedConfiguration]
    ) -> tuple[tuple[PlannedConfiguration, ...], AbstractSet[Path]]:
        from feedstock_tools.builds.plan.rendering import render_outputs

        engines = {
            configuration.platform: self._engines.planned(configuration.platform).identity for configuration in wanted
        }
        return run_bounded(partial(render_outputs, wanted, self._recipe, engines), self._bounds)

    def _begun(self) -> _Known:
        from feedstock_tools.feedstock.configurations import outline

        key = self._key(frozenset())
        outlined = run_bounded(partial(outline, self._feedstock.folder), self._bounds)
        needs: Mapping[str, Any] | None = None if self._feedstock.spec.is_file() else {}
        self._known = _Known(key, {configuration.name: configuration for configuration in outlined}, needs=needs)
        self._remember(self._known)
        return self._known

    def _recalled(self) -> _Known | None:
        """The plan in the cache; None if there is none, or only one for other files or another version."""
        cached = self._artifacts.recall(_CACHE)
        try:
            sources = frozenset(Path(path) for path in cached["sources"])
            if cached["key"] != self._key(sources):
                return None
            configurations = [PlannedConfiguration.from_json(entry) for entry in cached["configurations"]]
            return _Known(
                cached["key"],
                {configuration.name: configuration for configuration in configurations},
                sources,
                cached.get("needs"),
            )
        except (KeyError, TypeError):
            return None

    def _remember(self, plan: _Known, sources: AbstractSet[Path] = frozenset()) -> None:
        """Cache the results, unless files have changed since the plan was begun: then parts of it are outdated.

        Args:
            sources: local sources that the key does not cover yet.
        """
        unchanged = self._key(plan.sources) == plan.key
        self._known = plan = replace(plan, sources=plan.sources | sources)
        if not unchanged:
            return
        if sources:
            self._known = plan = replace(plan, key=self._key(plan.sources))
        content = {
            "key": plan.key,
            "sources": sorted(str(path) for path in plan.sources),
            "configurations": [configuration.to_json() for configuration in plan.configurations.values()],
            "needs": plan.needs,
        }
        self._artifacts.remember(_CACHE, content)

    def _key(self, sources: AbstractSet[Path]) -> str:
        """A value that changes when an input may have changed: the feedstock, local sources, this program and its data,
        the engine."""
        stamp = f"{stamp_of_files([*self._feedstock.inputs, *sorted(sources)])} {_own_stamp()}"
        return f"{__version__} {sys.version_info[:2]} {Platform.here().subdir} {stamp} {self._engines.stamp}"


@dataclass(frozen=True, slots=True)
class _Known:
    """The results so far, and the key of the files behind them."""

    key: str
    configurations: Mapping[str, PlannedConfiguration]
    sources: frozenset[Path] = frozenset()
    needs: Mapping[str, Any] | None = None


@cache
def _own_stamp() -> str:
    """A stamp of the program that this process runs, its data and its engine: a later version of them is another's."""
    spec = find_spec("rattler_build")
    engine = Path(spec.origin).parent if spec and spec.origin else Path()
    return f"{own_stamp()} {stamp_of_files(sorted(engine.glob('*.so')))}"


def _needs_of(feedstock: Feedstock) -> dict[str, Any]:
    from feedstock_tools.generate.spec.reading import read_spec

    return read_spec(feedstock.folder).needs.model_dump(exclude_none=True)


def _with_rows(configuration: PlannedConfiguration, chosen: Sequence[PlannedRow]) -> PlannedConfiguration:
    names = {row.name for row in chosen}
    return replace(configuration, rows=tuple(row for row in configuration.rows if row.name in names))
