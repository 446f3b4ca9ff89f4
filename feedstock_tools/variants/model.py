"""Variants as values: a configuration of axes, and the space of variants spanned by rows on each axis.

A variant file has `key: [values]` and the keys that are zipped (`zip_keys`). Its product can have thousands of variants
of hundreds of keys; since every selection that a rerender makes is by key, it is a selection of rows on each axis, and
the product is never computed. `VariantSpace` is independent axes with the remaining rows of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from math import prod
from operator import itemgetter
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError, Mistake

#: One value for every key.
Variant = Mapping[str, str]

#: The value in a row of a zip group that a migration set only in part; such rows make no variants. No file contains it.
NO_VALUE = "\0"

#: The JSON key of a number's text.
_NUMBER = "whole number"


def values_of(keys: Sequence[str]) -> Callable[[Variant], tuple[str, ...]]:
    """A function that returns a variant's values of `keys`, all of which must exist; built once, fast for many
    variants.

    >>> values_of(["python"])({"python": "3.12", "zlib": "1"})
    ('3.12',)
    """
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda variant: tuple(variant[key] for key in keys)


class WholeNumber(str):
    """A value that was written as an unquoted number and is written that way again; otherwise a string.

    >>> sorted([WholeNumber(10), WholeNumber(9)]), WholeNumber(9) == "9"
    (['9', '10'], True)
    """

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return int(self) < int(other) if isinstance(other, WholeNumber) else str.__lt__(self, other)


def values_to_json(values: Variant) -> dict[str, Any]:
    """A variant for a JSON file; numbers keep their text too.

    >>> values_to_json({"abi": WholeNumber("04"), "python": "3.12"})
    {'abi': {'whole number': '04'}, 'python': '3.12'}
    """
    return {
        key: {_NUMBER: str(value)} if isinstance(value, WholeNumber) else str(value) for key, value in values.items()
    }


def values_from_json(content: Mapping[str, Any]) -> dict[str, str]:
    """The inverse of `values_to_json`; `KeyError` or `TypeError` for any other document."""
    return {key: WholeNumber(value[_NUMBER]) if isinstance(value, dict) else value for key, value in content.items()}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a key got its values: a file and the line of the key in it (both absent for built-in defaults)."""

    source: str
    path: Path | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class VariantConfig:
    """The contents of variant files after selectors: the values of each key, and the groups of zipped keys.

    `extended` has the lists that grow from file to file instead of being replaced (`ignore_version` and the like) and
    `mappings` dictionaries under other keys than `pin_run_as_build`; neither spans variants. `origins` names the files
    that set a key, the one that decided last.
    """

    values: Mapping[str, tuple[str, ...]]
    zip_keys: tuple[tuple[str, ...], ...] = ()
    pin_run_as_build: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    extend_keys: tuple[str, ...] = ()
    extended: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict, compare=False)

    def group_of(self, key: str) -> tuple[str, ...]:
        """The zip group that holds `key`, else `key` alone."""
        return next((group for group in self.zip_keys if key in group), (key,))

    def with_values(self, changed: Mapping[str, tuple[str, ...]]) -> VariantConfig:
        """The same configuration with other values for some keys."""
        return replace(self, values={**self.values, **changed})


@dataclass(frozen=True, slots=True)
class Axis:
    """Zipped keys and their remaining rows of values (each row as long as `keys`)."""

    keys: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, key: str) -> tuple[str, ...]:
        """The values of `key`, one a row."""
        at = self.keys.index(key)
        return tuple(row[at] for row in self.rows)


@dataclass(frozen=True)
class VariantSpace:
    """All combinations of one row of each axis; no key is on two axes.

    Iterating gives the variants with the last axis running fastest.
    """

    axes: tuple[Axis, ...]

    @cached_property
    def _axis_of(self) -> Mapping[str, int]:
        return {key: at for at, axis in enumerate(self.axes) for key in axis.keys}

    @cached_property
    def _first(self) -> Variant:
        return dict(zip(self._axis_of, chain.from_iterable(axis.rows[0] for axis in self.axes), strict=True))

    @property
    def count(self) -> int:
        """The number of variants (which can exceed the limit of `len`)."""
        return prod(len(axis.rows) for axis in self.axes)

    def __iter__(self) -> Iterator[Variant]:
        for rows in product(*(axis.rows for axis in self.axes)):
            yield {
                key: value
                for axis, row in zip(self.axes, rows, strict=True)
                for key, value in zip(axis.keys, row, strict=True)
            }

    def __contains__(self, key: object) -> bool:
        return key in self._axis_of

    @property
    def keys(self) -> Collection[str]:
        return self._axis_of.keys()

    def axis(self, key: str) -> Axis:
        """The axis that `key` is on.

        Raises:
            KeyError: no axis has the key.
        """
        return self.axes[self._axis_of[key]]

    def values(self, key: str) -> tuple[str, ...]:
        """The different values of `key`, in the order of the rows."""
        return tuple(dict.fromkeys(self.axis(key).column(key)))

    def looping(self) -> Iterator[str]:
        """The keys that have more than one value."""
        for axis in self.axes:
            if len(axis.rows) > 1:
                yield from (key for key in axis.keys if len(set(axis.column(key))) > 1)

    def first(self) -> Variant:
        """The variant of the first rows.

        Raises:
            IndexError: an axis has no rows left.
        """
        return self._first

    def along(self, keys: Collection[str]) -> VariantSpace:
        """The axes that have one of some keys, complete (no zip group is split) and in their order.

        Keys that no axis has are ignored.
        """
        wanted = sorted({self._axis_of[key] for key in keys if key in self._axis_of})
        return VariantSpace(tuple(self.axes[at] for at in wanted))

    def where(self, choice: Mapping[str, Collection[str]]) -> VariantSpace:
        """The part where each key of `choice` has one of the given values; keys that no axis has are ignored."""
        touched: dict[int, list[str]] = {}
        for key in choice:
            if key in self._axis_of:
                touched.setdefault(self._axis_of[key], []).append(key)
        changed = {}
        for at, keys in touched.items():
            axis = self.axes[at]
            tests = [(axis.keys.index(key), frozenset(choice[key])) for key in keys]
            left = tuple(row for row in axis.rows if all(row[i] in allowed for i, allowed in tests))
            changed[at] = Axis(axis.keys, left)
        return self.with_axes(changed)

    def with_axes(self, changed: Mapping[int, Axis]) -> VariantSpace:
        """This space with other rows for the axes at some places; their keys stay."""
        axes = list(self.axes)
        for at, axis in changed.items():
            axes[at] = axis
        space = VariantSpace(tuple(axes))
        space.__dict__["_axis_of"] = self._axis_of  # as cached_property stores it; it is the same for both
        return space


#: Keys whose entries grow from file to file (conda_build/variants.py, DEFAULT_VARIANTS["extend_keys"]).
EXTENDING_KEYS = ("pin_run_as_build", "ignore_version", "ignore_build_only_deps", "extend_keys")

#: Keys in one zip group; the largest of conda-forge has nine.
_LARGEST_GROUP = 100


def combine(configs: Sequence[VariantConfig]) -> VariantConfig:
    """Combine several configurations; a later file replaces a key unless it is zipped and the file has only a part.

    A part of a zip group replaces the values if it is as long as the rest of the group; otherwise it must name existing
    values, and changes nothing.
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
    widest = (group for group in config.zip_keys if not any(set(group) < set(other) for other in config.zip_keys))
    config = replace(config, zip_keys=tuple(widest))
    wrong = faults(config)
    if wrong:
        raise InputError.of([_mistake(config, key, message) for key, message in wrong])
    zipped = {key for group in config.zip_keys for key in group}
    groups = {frozenset(group): group for group in reversed(config.zip_keys)}.values()
    axes = []
    for group in groups:
        rows = zip(*(config.values[key] for key in group), strict=True)
        axes.append(Axis(group, tuple(row for row in rows if NO_VALUE not in row)))
    axes.extend(
        Axis((key,), tuple(zip(values, strict=True)))
        for key, values in config.values.items()
        if values and key not in zipped
    )
    return VariantSpace(tuple(axis for axis in axes if axis.rows))


def faults(config: VariantConfig) -> list[tuple[str, str]]:
    """The mistakes for which conda-build refuses a configuration: pairs of key and message."""
    mistakes = [(key, f"the key '{key}' has a '-'; use '_' in keys") for key in config.values if "-" in key]
    seen: set[str] = set()
    # The same keys in another order are the same group, as conda-build compares groups as sets.
    for group in {frozenset(group): group for group in reversed(config.zip_keys)}.values():
        names = ", ".join(group)
        if len(group) > _LARGEST_GROUP:
            mistakes.append((group[0], f"the zip group has more than {_LARGEST_GROUP} keys"))
            continue
        for key in group:
            if key not in config.values:
                mistakes.append((key, f"'{key}' of the zip group [{names}] has no values"))
            elif key in seen:
                mistakes.append((key, f"'{key}' is in more than one zip group"))
            seen.add(key)
        lengths = {key: len(config.values[key]) for key in group if key in config.values}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{key}: {count}" for key, count in lengths.items())
            mistakes.append((group[0], f"the keys of a zip group have different numbers of values ({counts})"))
    return mistakes


def _mistake(config: VariantConfig, key: str, message: str) -> Mistake:
    origin = next(iter(config.origins.get(key, ())[-1:]), None)
    return Mistake(message, origin.path if origin else None, origin.line if origin else None)
