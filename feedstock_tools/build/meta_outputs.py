"""The outputs of configurations whose recipe is a `meta.yaml`: told for the list, as the engine here builds none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.recipe.v0 import Recipe

__all__ = ["NO_ENGINE", "with_meta_outputs"]

#: Why such a configuration is not built.
NO_ENGINE = (
    "its recipe is a meta.yaml, which takes conda-build, and there is no feedstock.yaml beside it that a recipe.yaml"
    " for the embedded engine could be made from"
)


def with_meta_outputs(configurations: Sequence[PlannedConfiguration], folder: Path) -> tuple[PlannedConfiguration, ...]:
    """Configurations with the outputs that conda-build would make, and the reason why they are not built here.

    Raises:
        InputError: the recipe cannot be read.
    """
    from feedstock_tools.recipe.v0 import read_recipe

    recipe = read_recipe(folder)
    return tuple(_complete(configuration, recipe) for configuration in configurations)


def _complete(configuration: PlannedConfiguration, recipe: Recipe) -> PlannedConfiguration:
    platform = Platform.parse(configuration.platform)
    try:
        rows = tuple(replace(row, outputs=_outputs(recipe, row, platform)) for row in configuration.rows)
    except InputError as error:
        return replace(configuration, refusal=str(error), rendered=True)
    return replace(configuration, rows=rows, refusal=NO_ENGINE, rendered=True)


def _outputs(recipe: Recipe, row: PlannedRow, platform: Platform) -> tuple[PlannedOutput, ...]:
    from feedstock_tools.recipe.v0 import render_recipe
    from feedstock_tools.variants import VariantConfig, combine, defaults

    values = VariantConfig({key: (value,) for key, value in row.values.items()})
    rendered = render_recipe(recipe, combine([defaults(platform), values]), platform)
    return tuple(
        PlannedOutput(
            name=output.name,
            version=output.version,
            build=output.build_string,
            build_number=output.build_number,
            subdir="noarch" if output.noarch else platform.subdir,
            identity="",
            uses_python="python" in output.variant and output.noarch is None,
        )
        for output in rendered.outputs
        if not output.skip
    )
