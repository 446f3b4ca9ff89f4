"""The outputs of configurations whose recipe is a `meta.yaml`, as conda-build would build them.

The result of a script under conda-build is unknown before it has run, so the identity of such an output contains the
text of the recipe itself, and its package is compared in name, version, build and subdir only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.builds.stand_in.tools import tools_among
from feedstock_tools.digests import digest_of_files, digest_of_values
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text

if TYPE_CHECKING:
    from feedstock_tools.recipe.v0.recipe import Recipe

#: A source that is a file or folder on this machine.
_PATH = re.compile(r"^\s*(?:-\s+)?path:\s*[\"']?([^\s\"'#{}]+)", re.MULTILINE)


def with_meta_outputs(
    configurations: Sequence[PlannedConfiguration],
    folder: Path,
    engines: Mapping[str, str],
    builder: Platform | None = None,
) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Configurations with the outputs that conda-build would make, and their local sources.

    Args:
        engines: platform → name and version of the engine that builds for it.
        builder: the platform of the machine that builds all of them; default each configuration's own.

    Raises:
        InputError: the recipe cannot be read.
    """
    from feedstock_tools.recipe.v0.recipe import read_recipe

    recipe = read_recipe(folder)
    sources = _sources(folder)
    parts = {
        "files": digest_of_files(sorted(path for path in folder.iterdir() if path.name != "conda_build_config.yaml")),
        "sources": digest_of_files(sorted(sources)),
    }
    complete = (
        _complete(configuration, recipe, {**parts, "engine": engines.get(configuration.platform, "")}, builder)
        for configuration in configurations
    )
    return tuple(complete), sources


def _sources(folder: Path) -> set[Path]:
    text = read_text(folder / "meta.yaml", within=folder)
    places = {(folder / place).resolve() for place in _PATH.findall(text)}
    return {place for place in places if place.exists()}


def _complete(
    configuration: PlannedConfiguration, recipe: Recipe, parts: Mapping[str, str], builder: Platform | None
) -> PlannedConfiguration:
    platform = Platform.parse(configuration.platform)
    try:
        rows = tuple(
            replace(row, outputs=_outputs(recipe, row, platform, builder or platform, parts))
            for row in configuration.rows
        )
    except InputError as error:
        return replace(configuration, refusal=str(error), rendered=True)
    return replace(configuration, rows=rows, refusal=None, rendered=True)


def _outputs(
    recipe: Recipe, row: PlannedRow, platform: Platform, builder: Platform, parts: Mapping[str, str]
) -> tuple[PlannedOutput, ...]:
    from feedstock_tools.recipe.v0.recipe import render_recipe
    from feedstock_tools.variants import VariantConfig, combine, defaults

    values = VariantConfig({key: (value,) for key, value in row.values.items()})
    rendered = render_recipe(recipe, combine([defaults(builder), values]), builder)
    built = [output for output in rendered.outputs if not output.skip]
    return tuple(
        PlannedOutput(
            name=output.name,
            version=output.version,
            build=output.build_string,
            build_number=output.build_number,
            subdir="noarch" if output.noarch else platform.subdir,
            identity=digest_of_values(inputs),
            inputs=inputs,
            uses_python="python" in output.variant and output.noarch is None,
            whole=False,
            tools=tools_among({str(need).split()[0] for needs in output.requirements.values() for need in needs}),
        )
        for output in built
        for inputs in [
            {**parts, "recipe": digest_of_values(output.requirements), "variant": digest_of_values(row.values)}
        ]
    )
