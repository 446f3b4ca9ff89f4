"""Variant files combined, later ones overriding earlier ones, and the space of variants that they span.

(conda_build/variants.py: combine_specs, explode_variants.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.variants.files import EXTENDING_KEYS, faults
from feedstock_tools.variants.model import NO_VALUE, Axis, Origin, VariantConfig, VariantSpace


def combine(configs: Sequence[VariantConfig]) -> VariantConfig:
    """Combine several configurations; a later file replaces a key unless it is zipped and the file has only a part.

    A part of a zip group replaces the values if it is as long as the rest of the group; otherwise it must name existing
    values, and changes nothing.

    Raises:
        InputError: such a part names missing values, or keys of a group differ in length in one file.
    """
    extend_keys = tuple(dict.fromkeys((*EXTENDING_KEYS, *(key for config in configs for key in config.extend_keys))))
    zip_keys = tuple(dict.fromkeys(group for config in configs for group in config.zip_keys))
    group_of = {key: group for group in reversed(zip_keys) for key in group}
    values: dict[str, tuple[str, ...]] = {}
    origins: dict[str, tuple[Origin, ...]] = {}
    extended: dict[str, tuple[str, ...]] = {}
    pins: dict[str, Mapping[str, str]] = {}
    mappings: dict[str, Mapping[str, str]] = {}
    for config in configs:
        pins.update(config.pin_run_as_build)
        mappings.update(config.mappings)
        for key, items in config.extended.items():
            extended[key] = tuple(dict.fromkeys((*extended.get(key, ()), *items)))
        for key, items in config.values.items():
            if key in extend_keys:
                extended[key] = tuple(dict.fromkeys((*extended.get(key, ()), *items)))
            elif key not in group_of:
                values[key] = items
                origins[key] = (*origins.get(key, ()), *config.origins.get(key, ()))
            elif _place(key, config, group_of[key], values):
                origins[key] = (*origins.get(key, ()), *config.origins.get(key, ()))
        for key in config.origins.keys() - config.values.keys():
            origins[key] = (*origins.get(key, ()), *config.origins[key])
    return VariantConfig(values, zip_keys, pins, extend_keys, extended, mappings, origins)


def _place(key: str, config: VariantConfig, group: tuple[str, ...], values: dict[str, tuple[str, ...]]) -> bool:
    """Put the values that `config` has for `key` into `values` if they apply; return whether they did."""
    new = config.values[key]
    if all(member in config.values for member in group):
        for member in group:
            if len(config.values[member]) != len(new):
                raise InputError(
                    f"'{key}' and '{member}' are zipped but have different numbers of values", **_place_of(config, key)
                )
        values.update({member: config.values[member] for member in group})
        return True
    if key not in values:
        return False
    alike = all(
        len(source[member]) == len(new) for source in (config.values, values) for member in group if member in source
    )
    if alike:
        values[key] = new
        return True
    missing = [value for value in new if value not in values[key]]
    if missing:
        absent = ", ".join(member for member in group if member not in config.values)
        raise InputError(
            f"'{key}' is zipped with {absent}, which this file does not set, and {', '.join(missing)} is not among its"
            f" values ({', '.join(values[key])})",
            hint="Set all keys of the zip group.",
            **_place_of(config, key),
        )
    return False


def _place_of(config: VariantConfig, key: str) -> Any:
    origin = next(iter(config.origins.get(key, ())), None)
    return {} if origin is None else {"path": origin.path, "line": origin.line}


def explode(config: VariantConfig) -> VariantSpace:
    """The variants of a configuration: each zip group an axis, every other key one of its own.

    A group within another, as files combined may have them, adds nothing to it: conda-build checks files alone.

    Raises:
        InputError: zip groups name keys without values, share keys, or their keys differ in length.
    """
    config = replace(config, zip_keys=_widest(config.zip_keys))
    wrong = faults(config)
    if wrong:
        raise InputError.of([_mistake(config, key, message) for key, message in wrong])
    zipped = {key for group in config.zip_keys for key in group}
    groups = {frozenset(group): group for group in reversed(config.zip_keys)}.values()
    axes = [Axis(group, _whole_rows(zip(*(config.values[key] for key in group), strict=True))) for group in groups]
    axes.extend(
        Axis((key,), tuple(zip(values, strict=True)))
        for key, values in config.values.items()
        if values and key not in zipped
    )
    return VariantSpace(tuple(axis for axis in axes if axis.rows))


def _widest(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """The groups that are not a part of another."""
    return tuple(group for group in groups if not any(set(group) < set(other) for other in groups))


def _whole_rows(rows: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(row for row in rows if NO_VALUE not in row)


def _mistake(config: VariantConfig, key: str, message: str) -> Mistake:
    origin = next(iter(config.origins.get(key, ())[-1:]), None)
    return Mistake(message, origin.path if origin else None, origin.line if origin else None)


def squash(space: VariantSpace, like: VariantConfig) -> VariantConfig:
    """The configuration that spans `space`; keys that span no variants come from `like`."""
    return VariantConfig(
        values={key: axis.column(key) for axis in space.axes for key in axis.keys},
        zip_keys=tuple(axis.keys for axis in space.axes if len(axis.keys) > 1),
        pin_run_as_build=like.pin_run_as_build,
        extend_keys=like.extend_keys,
        extended=like.extended,
        mappings=like.mappings,
        origins=like.origins,
    )
