"""The configurations of a feedstock: read from `.ci_support`, with the rows of each, and chosen by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow, select, with_short_names
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

_Found = TypeVar("_Found")


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


def short_names(feedstock: Path, configurations: Sequence[Configuration]) -> dict[str, str]:
    """The short name of each configuration of a feedstock, by its name; all of them must be there."""
    return {
        each.name: each.short_name for each in _planned(with_own_values(Feedstock(feedstock).recipe, configurations))
    }


def in_short(found: _Found, feedstock: Path) -> _Found:
    """What was found about a feedstock, as people read it: its configurations have their short names."""
    return renamed(found, short_names(feedstock, read_configurations(feedstock)))


def renamed(found: _Found, names: Mapping[str, str]) -> _Found:
    """A value in which the texts that are one of the names, however deep, are replaced."""

    def after(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if is_dataclass(value) and not isinstance(value, type):
            own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            changed = {name: new for name, old in own.items() if (new := after(old)) is not old}
            return replace(value, **changed) if changed else value
        if isinstance(value, Mapping) and (pairs := {after(key): after(each) for key, each in value.items()}) != value:
            return pairs
        if isinstance(value, tuple | list) and (new := [*map(after, value)]) != [*value]:
            return type(value)(new)
        return value

    return cast("_Found", after(found))


def outline(feedstock: Path) -> tuple[PlannedConfiguration, ...]:
    """The configurations of a feedstock and their rows, without outputs; including values from a recipe.yaml's own
    variant file.
    """
    configurations = with_own_values(Feedstock(feedstock).recipe, read_configurations(feedstock))
    return _planned(configurations)


def _planned(configurations: Sequence[Configuration]) -> tuple[PlannedConfiguration, ...]:
    return with_short_names(
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
