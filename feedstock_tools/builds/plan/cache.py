"""What a feedstock would build: every configuration and row, and the outputs of those that are asked for.

Rendering a recipe takes some milliseconds a row, so it is done for the configurations that are to be built or listed,
and kept in a cache for as long as nothing has changed that it came from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.builds.plan.outputs_v0 import with_meta_outputs
from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files, stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow
from feedstock_tools.platforms import Platform

__all__ = ["Plan", "outline", "render_outputs"]

_CACHE = "plan"


class Plan:
    """The configurations of a feedstock, which are rendered when they are needed."""

    def __init__(
        self,
        feedstock: Feedstock,
        artifacts: Artifacts,
        *,
        recipe: Callable[[], Path],
        engine: Callable[[str], str],
        stamp: str = "",
        refresh: Callable[[], None],
    ) -> None:
        """Take the plan from the cache, or begin a new one.

        Args:
            recipe: gives the `recipe.yaml` that is built.
            engine: gives the name and version of the engine that builds for a platform.
            stamp: changes when that may.
            refresh: brings what is generated up to date; called only where an input has changed since the plan in the
                cache was made.

        Raises:
            InputError: the feedstock's files cannot be used.
        """
        self._feedstock = feedstock
        self._artifacts = artifacts
        self._recipe = recipe
        self._engine = engine
        self._stamp = stamp
        self._sources: set[Path] = set()
        self._configurations: dict[str, PlannedConfiguration] = {}
        self._needs: dict[str, Any] | None = None
        self._known = ""
        if not self._recall():
            refresh()
            self._known = self._key()
            self._configurations = {each.name: each for each in outline(feedstock.folder)}
            self._remember()

    @property
    def configurations(self) -> tuple[PlannedConfiguration, ...]:
        """All configurations, in the order of their names; their outputs are not to be looked at."""
        return tuple(self._configurations.values())

    @property
    def needs(self) -> Mapping[str, Any]:
        """What the spec says that a build takes, by key; nothing without a spec.

        Raises:
            InputError: the spec cannot be used.
        """
        if self._needs is None:
            self._needs = _needs_of(self._feedstock)
            self._remember()
        return self._needs

    @property
    def sources(self) -> tuple[Path, ...]:
        """The local sources of the configurations that were completed."""
        return tuple(sorted(self._sources))

    def complete(self, chosen: Sequence[PlannedConfiguration]) -> tuple[PlannedConfiguration, ...]:
        """The chosen configurations, each with the rows it has, with their outputs.

        Raises:
            InputError: the recipe cannot be read.
        """
        missing = [each.name for each in chosen if not self._configurations[each.name].rendered]
        if missing:
            wanted = [self._configurations[name] for name in missing]
            rendered, sources = render_outputs(wanted, self._recipe(), self._engine)
            self._configurations |= {each.name: each for each in rendered}
            self._remember(sources)
        return tuple(_with_rows(self._configurations[each.name], each.rows) for each in chosen)

    def _recall(self) -> bool:
        cached = self._artifacts.recall(_CACHE)
        try:
            self._sources = {Path(path) for path in cached["sources"]}
            if cached["key"] != self._key():
                self._sources = set()
                return False
            self._known = cached["key"]
            found = [PlannedConfiguration.from_json(each) for each in cached["configurations"]]
        except (KeyError, TypeError):  # none yet, or one of another version
            return False
        self._configurations = {each.name: each for each in found}
        self._needs = cached.get("needs")
        return True

    def _remember(self, sources: AbstractSet[Path] = frozenset()) -> None:
        """Keep the plan, unless files have changed since it was begun: then parts of it are of before and after."""
        unchanged = self._key() == self._known
        self._sources |= sources
        if not unchanged:
            return
        self._known = self._key()
        content = {
            "key": self._known,
            "sources": sorted(str(path) for path in self._sources),
            "configurations": [each.to_json() for each in self._configurations.values()],
            "needs": self._needs,
        }
        self._artifacts.remember(_CACHE, content)

    def _key(self) -> str:
        """What changes when an input may have: the feedstock, local sources, this program and its data, the engine."""
        spec = find_spec("rattler_build")
        engine = Path(spec.origin).parent if spec and spec.origin else Path()
        own = [PACKAGE, data_folder("templates"), data_folder("variants"), *sorted(engine.glob("*.so"))]
        stamp = stamp_of_files([*self._feedstock.inputs, *sorted(self._sources), *own])
        return f"{__version__} {sys.version_info[:2]} {Platform.here().subdir} {stamp} {self._stamp}"


def _needs_of(feedstock: Feedstock) -> dict[str, Any]:
    if not feedstock.spec.is_file():
        return {}
    from feedstock_tools.generate import read_spec

    return read_spec(feedstock.folder).needs.model_dump(exclude_none=True)


def outline(feedstock: Path) -> tuple[PlannedConfiguration, ...]:
    """The configurations of a feedstock and their rows, without outputs; what a recipe.yaml's own file adds included.

    Raises:
        InputError: a configuration or the recipe's own variant file cannot be read.
    """
    from feedstock_tools.rerender.configurations.configuration import read_configurations
    from feedstock_tools.rerender.configurations.own_variants import with_own_values
    from feedstock_tools.rerender.configurations.rows import cuda_version, python_version, rows_of

    return tuple(
        PlannedConfiguration(
            name=configuration.name,
            platform=configuration.platform.subdir,
            rows=tuple(
                PlannedRow(row.name, row.values, python_version(row.values), cuda_version(row.values))
                for row in rows_of(configuration)
            ),
            channels=_channels(configuration.values.get("channel_sources", ())),
        )
        for configuration in with_own_values(Feedstock(feedstock).recipe, read_configurations(feedstock))
    )


def render_outputs(
    configurations: Sequence[PlannedConfiguration], recipe: Path, engine: Callable[[str], str]
) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Render every row of some configurations; they with their outputs, and the local sources that these depend on.

    A configuration that cannot be rendered has no outputs, and the reason as its refusal.

    Raises:
        InputError: the recipe cannot be read.
    """
    from feedstock_tools.builds.plan.outputs_v1 import local_sources, promise_row
    from feedstock_tools.recipe.v1_engine import plain, read_v1, render_row

    if not recipe.is_file() and (recipe.parent / "meta.yaml").is_file():
        return with_meta_outputs(configurations, recipe.parent, engine)
    parsed = read_v1(recipe)
    builder = Platform.here()
    sources: set[Path] = set()
    remembered, engine_for = cache(digest_of_files), cache(engine)

    def with_outputs(row: PlannedRow, platform: Platform) -> PlannedRow:
        rendered = [plain(output) for output in render_row(parsed, row.name, row.values, platform, builder)]
        sources.update(local_sources(rendered, recipe.parent))
        outputs = promise_row(
            rendered, recipe.parent, engine_for(platform.subdir), lambda roots: remembered(tuple(roots))
        )
        return replace(row, outputs=outputs)

    def complete(configuration: PlannedConfiguration) -> PlannedConfiguration:
        platform = Platform.parse(configuration.platform)
        try:
            rows = tuple(with_outputs(row, platform) for row in configuration.rows)
        except InputError as error:
            return replace(configuration, refusal=str(error), rendered=True)
        return replace(configuration, rows=rows, refusal=None, rendered=True)

    return tuple(complete(configuration) for configuration in configurations), sources


def _with_rows(configuration: PlannedConfiguration, chosen: Sequence[PlannedRow]) -> PlannedConfiguration:
    names = {row.name for row in chosen}
    return replace(configuration, rows=tuple(row for row in configuration.rows if row.name in names))


def _channels(listed: Sequence[str]) -> tuple[str, ...]:
    """`channel_sources` is a list whose first text names channels with commas between them."""
    return tuple(name.strip() for name in (listed[0] if listed else "").split(",") if name.strip())
