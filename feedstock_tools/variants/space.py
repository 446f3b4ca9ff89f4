"""From a configuration to the space of its variants (conda_build/variants.py: explode_variants)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.variants.files import faults
from feedstock_tools.variants.model import NO_VALUE, Axis, VariantConfig, VariantSpace


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
