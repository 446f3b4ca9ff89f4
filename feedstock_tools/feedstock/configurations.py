"""The configurations of a feedstock: read from `.ci_support`, with the rows of each, and chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow, select, with_traits
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.rerender.configuration import (
    NO_LOOP,
    Configuration,
    cuda_version,
    python_version,
    read_configurations,
    rows_of,
    with_own_values,
    with_rows,
)


def configurations_of(feedstock: Path, names: Sequence[str] = ()) -> tuple[Configuration, ...]:
    """The configurations of a feedstock selected by names, like `choose`, with all values for a build.

    Raises:
        InputError: the feedstock has no configurations, they cannot be read, or a name matches none.
    """
    configurations = read_configurations(feedstock)
    if not configurations:
        hint = "`feedstock-tools rerender` writes them."
        raise InputError("the feedstock has no configurations", path=feedstock / CI_SUPPORT, hint=hint)
    return choose(names, with_own_values(Feedstock(feedstock).recipe, configurations))


def choose(names: Sequence[str], configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """The configurations that the names mean, each once and with the rows that they mean; all where no name is given.

    A name is that of a file without `.yaml`, a glob, or a short name such as `linux_64_cuda11.2_py3.12`.

    Raises:
        InputError: a name matches none; all such names at once, each with the nearest ones.
    """
    if not names:
        return tuple(configurations)
    by_name = {configuration.name: configuration for configuration in configurations}
    chosen = select(names, _planned(configurations))
    return tuple(with_rows(by_name[planned.name], [row.name for row in planned.rows]) for planned in chosen)


def outline(feedstock: Path) -> tuple[PlannedConfiguration, ...]:
    """The configurations of a feedstock and their rows, without outputs; including values from a recipe.yaml's own
    variant file.
    """
    configurations = with_own_values(Feedstock(feedstock).recipe, read_configurations(feedstock))
    return _planned(configurations)


def _planned(configurations: Sequence[Configuration]) -> tuple[PlannedConfiguration, ...]:
    return with_traits(
        [
            PlannedConfiguration(
                name=configuration.name,
                platform=configuration.platform.subdir,
                rows=tuple(
                    PlannedRow(row.name, row.values, python_version(row.values), cuda_version(row.values))
                    for row in rows_of(configuration)
                ),
                channels=_channels(configuration.values.get("channel_sources", ())),
            )
            for configuration in configurations
        ],
        NO_LOOP,
    )


def _channels(listed: Sequence[str]) -> tuple[str, ...]:
    """`channel_sources` is a list whose first text names channels with commas between them."""
    return tuple(name.strip() for name in (listed[0] if listed else "").split(",") if name.strip())
