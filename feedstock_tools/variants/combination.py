"""Combine variant files, later ones overriding earlier ones, as conda-build does (variants.py: combine_specs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants.files import EXTENDING_KEYS
from feedstock_tools.variants.model import Origin, VariantConfig


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
