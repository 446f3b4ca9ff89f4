"""The input variants that an output of a `recipe.yaml` represents: those that agree with the values it used.

(rattler_build_conda_compat/render.py: get_used_vars, _reduce_variants.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.model import UsedVariables
from feedstock_tools.variants.model import Axis, Variant, VariantConfig, VariantSpace


class InputVariants:
    """The input variants of a platform; common parts are created once."""

    def __init__(
        self, config: VariantConfig, space: VariantSpace, path: Path, mentioned: Mapping[str | None, frozenset[str]]
    ) -> None:
        """Start for the variants `space` of `config`.

        Args:
            path: of the recipe, for messages.
            mentioned: the keys that each output mentions, for versions of the engine that counted them all; else empty.
        """
        self._path = path
        self._mentioned = mentioned
        zipped = frozenset(key for group in config.zip_keys for key in group)
        self._zipped = [axis for axis in space.axes if axis.keys[0] in zipped]
        self._values = config.values
        self._free = {key: values for key, values in config.values.items() if key not in zipped and values}
        self._first = {key: Axis((key,), (values[:1],)) for key, values in self._free.items()}
        self._place = {key: place for place, key in enumerate(self._free, len(self._zipped))}
        self._base = VariantSpace((*self._zipped, *self._first.values()))
        self._first_values = {key: values[0] for key, values in self._free.items()}
        self._looping = frozenset(key for key, values in config.values.items() if len(set(values)) > 1)
        self._spaces: dict[tuple[tuple[tuple[str, str], ...], frozenset[str]], VariantSpace] = {}

    def of(
        self, name: str, noarch: str | None, used: Mapping[str, str], siblings: Collection[str]
    ) -> Iterator[tuple[UsedVariables, VariantSpace]]:
        """The variables that an output uses and the variants that it represents.

        Args:
            used: the values that it was rendered with, by `own_values`.
            siblings: the names of packages of the same recipe.

        Raises:
            InputError: no variant has these values.
        """
        unseen = self._unseen(name, noarch, siblings).difference(used)
        space = self._space(used, unseen, name)
        keys = frozenset(used) | unseen
        looped = keys & self._looping
        found = UsedVariables(keys, looped, keys, looped)
        for chosen in _choices(space, unseen & self._looping):
            yield found, space.where(chosen) if chosen else space

    def first_of(self, space: VariantSpace) -> Variant:
        """The first variant of a space that `of` gave, as `VariantSpace.first` gives it."""
        axes = space.axes[: len(self._zipped)]
        changed = [axis for axis in space.axes[len(self._zipped) :] if axis is not self._first[axis.keys[0]]]
        first = dict(self._first_values)
        for axis in (*axes, *changed):
            first.update(zip(axis.keys, axis.rows[0], strict=True))
        return first

    def _unseen(self, name: str, noarch: str | None, siblings: Collection[str]) -> frozenset[str]:
        """The keys that the recipe mentions, for versions of the engine that counted them all."""
        named = self._mentioned.get(name, self._mentioned.get(None, frozenset()))
        left_out = {*siblings, "python"} if noarch == "python" else siblings
        return frozenset(key for key in named if key in self._values and key not in left_out)

    def _space(self, used: Mapping[str, str], whole: frozenset[str], name: str) -> VariantSpace:
        """The input variants that agree with `used`.

        Keys in `whole` and zip groups keep all values that agree; for any other key the first value counts.
        """
        wanted = (tuple(sorted((key, value) for key, value in used.items() if key in self._values)), whole)
        if wanted not in self._spaces:
            axes = {place: _agreeing(axis, used) for place, axis in enumerate(self._zipped)}
            for key in {*used, *whole} & self._free.keys():
                some = [candidate for candidate in self._free[key] if candidate == used.get(key, candidate)]
                axes[self._place[key]] = Axis(
                    (key,), tuple((candidate,) for candidate in (some if key in whole else some[:1]))
                )
            if not all(axis.rows for axis in axes.values()):
                raise InputError(
                    f"no variant has the values with which the engine reports to have rendered '{name}'",
                    path=self._path,
                )
            self._spaces[wanted] = self._base.with_axes(axes)
        return self._spaces[wanted]


def _agreeing(axis: Axis, used: Mapping[str, str]) -> Axis:
    """The rows of an axis that have the values of `used`."""
    wanted = [(place, used[key]) for place, key in enumerate(axis.keys) if key in used]
    return Axis(axis.keys, tuple(row for row in axis.rows if all(row[place] == value for place, value in wanted)))


def _choices(space: VariantSpace, keys: frozenset[str]) -> list[dict[str, tuple[str, ...]]]:
    if not keys:
        return [{}]
    rows = {tuple((key, row[key]) for key in sorted(keys)): None for row in space.project(keys)}
    return [{key: (value,) for key, value in row} for row in rows]
