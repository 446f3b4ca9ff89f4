"""The outputs of configurations, rendered row by row from the recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from feedstock_tools.builds.plan.outputs.v0 import with_meta_outputs
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow
from feedstock_tools.platforms import Platform


def render_outputs(
    configurations: Sequence[PlannedConfiguration], recipe: Path, engines: Mapping[str, str]
) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Render every row of some configurations; return them with their outputs and local sources.

    A configuration that cannot be rendered has no outputs, but a refusal with the reason.

    Args:
        recipe: the `recipe.yaml`; if there is no such file, the `meta.yaml` beside it is rendered.
        engines: platform → name and version of the engine that builds for it, part of each output's identity.

    Raises:
        InputError: the recipe cannot be read.
    """
    from feedstock_tools.builds.plan.outputs.v1 import local_sources, promise_row
    from feedstock_tools.recipe.v1_engine import plain, read_v1, render_row

    if not recipe.is_file() and (recipe.parent / "meta.yaml").is_file():
        return with_meta_outputs(configurations, recipe.parent, engines)
    parsed = read_v1(recipe)
    builder = Platform.here()
    sources: set[Path] = set()
    remembered = cache(digest_of_files)

    def with_outputs(row: PlannedRow, platform: Platform) -> PlannedRow:
        rendered = [plain(output) for output in render_row(parsed, row.name, row.values, platform, builder)]
        sources.update(local_sources(rendered, recipe.parent))
        engine = engines.get(platform.subdir, "")
        outputs = promise_row(rendered, recipe.parent, engine, lambda roots: remembered(tuple(roots)))
        return replace(row, outputs=outputs)

    def complete(configuration: PlannedConfiguration) -> PlannedConfiguration:
        platform = Platform.parse(configuration.platform)
        try:
            rows = tuple(with_outputs(row, platform) for row in configuration.rows)
        except InputError as error:
            return replace(configuration, refusal=str(error), rendered=True)
        return replace(configuration, rows=rows, refusal=None, rendered=True)

    return tuple(complete(configuration) for configuration in configurations), sources
