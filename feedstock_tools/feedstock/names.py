"""Selecting configurations by name: an exact one, a glob, or a short name such as `linux_64_cuda11.2`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PlannedConfiguration

_SHORT = re.compile(
    r"(?P<platform>[a-z]+_[a-z0-9]+)(?:_(?P<cpu>cpu)|_cuda(?P<cuda>[0-9.]+))?(?:_py(?P<python>[0-9.]+))?"
)
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ShortName:
    """`<platform>[_cpu|_cuda<version>][_py<version>]`: the values that a configuration must match.

    A version matches those that continue it: `cuda12` matches 12.0 and 12.9, `py3.1` only 3.1.
    """

    platform: str
    cpu: bool = False
    cuda: str | None = None
    python: str | None = None

    @classmethod
    def parse(cls, text: str) -> ShortName | None:
        """None if the text does not have that form.

        >>> ShortName.parse("linux_64_cuda11.2_py3.12")
        ShortName(platform='linux_64', cpu=False, cuda='11.2', python='3.12')
        """
        match = _SHORT.fullmatch(text)
        return cls(match["platform"], match["cpu"] is not None, match["cuda"], match["python"]) if match else None

    def choose(self, configuration: PlannedConfiguration) -> PlannedConfiguration | None:
        """The configuration with the matching rows; None if no row matches."""
        if configuration.platform.replace("-", "_", 1) != self.platform:
            return None
        rows = tuple(
            row
            for row in configuration.rows
            if (not self.cpu or row.cuda is None)
            and (self.cuda is None or _continues(row.cuda, self.cuda))
            and (self.python is None or _continues(row.python, self.python))
        )
        return replace(configuration, rows=rows) if rows else None


def _continues(version: str | None, start: str) -> bool:
    parts = start.split(".")
    return version is not None and version.split(".")[: len(parts)] == parts


def select(names: Sequence[str], configurations: Sequence[PlannedConfiguration]) -> tuple[PlannedConfiguration, ...]:
    """The configurations selected by names, in the order of the names, each once.

    A name is, in this order: the name of a file in `.ci_support` without `.yaml`, a glob over those names or, if none
    of them matches, over short names; a short name.
    Two short names that select different rows of one configuration select both.

    Raises:
        InputError: a name matches none; all such names at once, each with the nearest ones.
    """
    chosen: dict[str, PlannedConfiguration] = {}
    mistakes: list[Mistake] = []
    for name in dict.fromkeys(names):
        matching = _matches(name, configurations)
        if not matching:
            mistakes.append(_unknown(name, configurations))
        for configuration in matching:
            earlier = chosen.get(configuration.name)
            chosen[configuration.name] = _both(earlier, configuration) if earlier else configuration
    if mistakes:
        raise InputError.of(mistakes)
    return tuple(chosen.values())


def rows_by_short_name(configurations: Iterable[PlannedConfiguration]) -> Counter[str]:
    """The number of rows that each short name selects, such as `linux_64`, `linux_64_cuda11` and `linux_64_cpu_py3.12`.

    The same as from `select`, for all of them at once.
    """
    counts: Counter[str] = Counter()
    for configuration in configurations:
        platform = configuration.platform.replace("-", "_", 1)
        for row in configuration.rows:
            kinds = [f"_cuda{version}" for version in _starts(row.cuda)] if row.cuda else ["_cpu"]
            pythons = ["", *(f"_py{version}" for version in _starts(row.python))] if row.python else [""]
            counts.update(f"{platform}{kind}{python}" for kind in ("", *kinds) for python in pythons)
    return counts


def _starts(version: str) -> Iterable[str]:
    parts = version.split(".")
    return (".".join(parts[:number]) for number in range(1, len(parts) + 1))


def with_filter(glob: str | None, configurations: Sequence[PlannedConfiguration]) -> tuple[PlannedConfiguration, ...]:
    """Those whose names match a glob or, where there is none, whose short names do; all for None.

    Raises:
        InputError: no name matches.
    """
    if glob is None:
        return tuple(configurations)
    matching = tuple(_by_glob(glob, configurations))
    if not matching:
        raise InputError.of([_unknown(glob, configurations)])
    return matching


def _matches(name: str, configurations: Sequence[PlannedConfiguration]) -> list[PlannedConfiguration]:
    exact = [configuration for configuration in configurations if configuration.name == name]
    if exact:
        return exact
    if _GLOB.search(name):
        return _by_glob(name, configurations)
    short = ShortName.parse(name)
    return [chosen for configuration in configurations if (chosen := short.choose(configuration))] if short else []


def _by_glob(glob: str, configurations: Sequence[PlannedConfiguration]) -> list[PlannedConfiguration]:
    """Those whose names match a glob or, where there is none, those whose short names do."""
    by_file = [configuration for configuration in configurations if fnmatchcase(configuration.name, glob)]
    return by_file or [configuration for configuration in configurations if fnmatchcase(configuration.short_name, glob)]


def _both(first: PlannedConfiguration, second: PlannedConfiguration) -> PlannedConfiguration:
    rows = {row.name: row for row in (*first.rows, *second.rows)}
    return replace(first, rows=tuple(rows.values()))


def _unknown(name: str, configurations: Sequence[PlannedConfiguration]) -> Mistake:
    import difflib

    names = dict.fromkeys(_names(configurations))
    nearest = difflib.get_close_matches(name, names, n=5, cutoff=0.4) or list(names)[:5]
    hint = f"The nearest are: {', '.join(nearest)}." if nearest else "The feedstock has no configurations."
    return Mistake(f"no configuration matches '{name}'", hint=hint)


def _names(configurations: Iterable[PlannedConfiguration]) -> Iterable[str]:
    for configuration in configurations:
        yield configuration.short_name
        if len(configuration.pythons) > 1:
            yield from (f"{configuration.short_name}_py{python}" for python in configuration.pythons)
        yield configuration.name
