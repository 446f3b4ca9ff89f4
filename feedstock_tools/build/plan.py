"""What a feedstock would build: every configuration, row and output, from a cache while nothing has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools import __version__
from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.contents import digest_of_files, stamp_of_files
from feedstock_tools.build.feedstock import Feedstock
from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from rattler_build import Stage0Recipe

    from feedstock_tools.rerender.configuration import Configuration

__all__ = ["make_plan", "plan_feedstock"]

_PACKAGE = Path(__file__).resolve().parent.parent
_CACHE = "plan"


def plan_feedstock(
    feedstock: Feedstock, artifacts: Artifacts, engine: Callable[[], str], refresh: Callable[[], Path]
) -> tuple[PlannedConfiguration, ...]:
    """The plan of a feedstock.

    Args:
        engine: gives the name and version of the engine.
        refresh: brings what is generated up to date and gives the folder of the recipe to build; it is called, and the
            recipe rendered, only where an input has changed since the plan in the cache was made.

    Raises:
        InputError: the feedstock's files cannot be used.
        WorkError: the cache cannot be written.
    """
    cached = artifacts.recall(_CACHE)
    if isinstance(cached, dict):
        try:
            sources = tuple(Path(path) for path in cached["sources"])
            if cached["key"] == _key(feedstock, sources):
                return tuple(PlannedConfiguration.from_json(each) for each in cached["configurations"])
        except (KeyError, TypeError):
            pass  # the cache of another version: made again below
    recipe_folder = refresh()
    plan, found = make_plan(feedstock.folder, recipe_folder, engine())
    sources = tuple(sorted(found))
    content = {
        "key": _key(feedstock, sources),
        "sources": [str(path) for path in sources],
        "configurations": [each.to_json() for each in plan],
    }
    artifacts.remember(_CACHE, content)
    return plan


def make_plan(feedstock: Path, recipe_folder: Path, engine: str) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Render every row of every configuration of a feedstock; the plan, and the local sources that it depends on.

    A configuration that cannot be rendered is in the plan without outputs, with the reason.

    Raises:
        InputError: the recipe or a configuration cannot be read.
    """
    from feedstock_tools.build.promise import read_recipe
    from feedstock_tools.rerender.configuration import read_configurations

    path = recipe_folder / "recipe.yaml"
    recipe = read_recipe(path) if path.is_file() else None
    sources: set[Path] = set()
    remembered = cache(digest_of_files)

    def digest(roots: Sequence[Path]) -> str:
        return remembered(tuple(roots))

    plan = []
    for configuration in read_configurations(feedstock):
        rows, refusal = _plan_rows(configuration, recipe, _Ground(recipe_folder, engine, digest), sources)
        channels = _channels(configuration.values.get("channel_sources", ()))
        plan.append(PlannedConfiguration(configuration.name, configuration.platform.subdir, rows, channels, refusal))
    return tuple(plan), sources


@dataclass(frozen=True, slots=True)
class _Ground:
    """What all rows have in common: the recipe's folder, the engine's name and version, and hashes of files."""

    recipe: Path
    engine: str
    digest: Callable[[Sequence[Path]], str]


def _plan_rows(
    configuration: Configuration, recipe: Stage0Recipe | None, ground: _Ground, sources: set[Path]
) -> tuple[tuple[PlannedRow, ...], str | None]:
    """The rows of a configuration with their outputs, and the reason where those cannot be told."""
    from feedstock_tools.build.promise import local_sources, promise_row, render_row
    from feedstock_tools.build.rows import cuda_version, python_version, rows_of

    builder = Platform.here()
    refusal = None if recipe else "its recipe is a meta.yaml without a feedstock.yaml beside it"
    planned = []
    for row in rows_of(configuration):
        outputs: tuple[PlannedOutput, ...] = ()
        if recipe is not None:
            try:
                rendered = render_row(recipe, row, configuration.platform, builder)
            except InputError as error:
                refusal = str(error)
            else:
                sources |= local_sources(rendered, ground.recipe)
                outputs = promise_row(rendered, ground.recipe, ground.engine, ground.digest)
        planned.append(PlannedRow(row.name, row.values, python_version(row.values), cuda_version(row.values), outputs))
    return tuple(planned), refusal


def _channels(listed: Sequence[str]) -> tuple[str, ...]:
    """`channel_sources` is a list whose first text names channels with commas between them."""
    return tuple(name.strip() for name in (listed[0] if listed else "").split(",") if name.strip())


def _key(feedstock: Feedstock, sources: Sequence[Path]) -> str:
    spec = find_spec("rattler_build")
    engine = Path(spec.origin).parent if spec and spec.origin else Path()
    builder = Platform.here().subdir
    own = [_PACKAGE, data_folder("templates"), data_folder("variants"), *sorted(engine.glob("*.so"))]
    stamp = stamp_of_files([*feedstock.inputs, *sources, *own])
    return f"{__version__} {sys.version_info[:2]} {builder} {stamp}"
