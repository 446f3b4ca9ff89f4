"""The planned builds as plain values: configurations, their rows, the outputs of each row.

`--list` and a run with nothing to do need no more than this, so it imports nothing heavy; the values are kept as JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.files.locks import say_aside
from feedstock_tools.wording import some_of

#: Subdir and file name without extension: a package of a channel, equal for rows that make the same one.
PackageId = tuple[str, str]
#: What a shared build has in place of the subdir of a package.
SHARED = "shared"
#: The most that a message lists of what a short name means.
_FEW = 4


@dataclass(frozen=True, slots=True)
class PlannedOutput:
    """One package of a row, according to its rendered recipe; or a shared build, whose files other outputs inherit.

    `identity` is a hash of all its inputs except the channel; `inputs` has the digest of each part. `siblings` are
    the outputs of the same row that it needs, by name. `pins` are the outputs of the row that it must depend on
    exactly, as `version build`. `has_files`: a package without any is a mistake. `uses_python`: its tests run the row's
    Python. `staging` are the staging outputs whose files it inherits. `whole`: its pins and features are known; those
    of a `meta.yaml` are not. `tools` are the tools of the stand-in channel among its requirements and those of its
    siblings, each with its digest.
    `needs` are the specs of its build and host environment, `runs` those that running and testing it installs.
    Of a shared build `environments` are the specs of its build and host environment, and `uses_cuda` says whether it
    depends on the row's CUDA version; without that it is built as on a machine without a GPU. `rows` are the rows
    that one call of the feedstock's script builds, each with a digest of its outputs.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    identity: str
    siblings: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    track_features: tuple[str, ...] = ()
    uses_python: bool = False
    has_files: bool = False
    staging: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    tools: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    environments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    uses_cuda: bool = False
    rows: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name of the package's file without extension."""
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def is_shared(self) -> bool:
        return self.subdir == SHARED

    @property
    def package_id(self) -> PackageId:
        return self.subdir, self.stem

    @property
    def file_name(self) -> str:
        return f"{self.stem}.conda"


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One variant of a configuration and its outputs, in build order.

    `shared` are the builds that its outputs inherit from, by the names in their `staging`. Rows share those of one
    identity. `traits` are texts of values, such as `mkl`, that tell it from rows with the same platform, CUDA version
    and Python. `short_name`, such as `linux_64_cuda12.9_mkl_py3.12`, selects it alone.
    """

    name: str
    values: Mapping[str, str]
    python: str | None
    cuda: str | None
    outputs: tuple[PlannedOutput, ...] = ()
    shared: tuple[PlannedOutput, ...] = ()
    traits: tuple[str, ...] = ()
    short_name: str = ""

    @property
    def build_python(self) -> str | None:
        """The Python that its builds run: its own, else that of noarch packages, `python_min` of the configuration."""
        return self.python or self.values.get("python_min")


@dataclass(frozen=True, slots=True)
class PlannedConfiguration:
    """A file of `.ci_support` and its rows.

    `whole_name` is the short name that selects all of its rows and no others; where no short name does, its name.
    `rendered`: the outputs of its rows are known; `refusal` is the reason if they cannot be determined.
    """

    name: str
    platform: str
    rows: tuple[PlannedRow, ...]
    channels: tuple[str, ...] = ()
    refusal: str | None = None
    rendered: bool = False
    whole_name: str = ""

    @property
    def short_name(self) -> str:
        """What tables, pages and messages call it: of a single chosen row that row's, else `whole_name`."""
        return (self.rows[0].short_name if len(self.rows) == 1 else self.whole_name) or self.name

    @property
    def cuda(self) -> str | None:
        """The CUDA version of its rows; None for a CPU build."""
        return next((row.cuda for row in self.rows if row.cuda), None)

    @property
    def cuda_majors(self) -> frozenset[str]:
        """The major versions of CUDA of all its rows: a runtime serves all minor versions of its own."""
        return frozenset(row.cuda.partition(".")[0] for row in self.rows if row.cuda)

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.python for row in self.rows if row.python))

    def to_json(self) -> dict[str, Any]:
        """For a cache of plans."""
        from feedstock_tools.variants.model import values_to_json

        rows = [
            {
                **_members(row),
                "values": values_to_json(row.values),
                "outputs": [_members(each) for each in row.outputs],
                "shared": [_members(each) for each in row.shared],
            }
            for row in self.rows
        ]
        return {**_members(self), "rows": rows}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PlannedConfiguration:
        """The inverse of `to_json`; `KeyError` or `TypeError` for any other document."""
        rows = tuple(
            PlannedRow(
                **{
                    **row,
                    "values": _values(row["values"]),
                    "outputs": tuple(_output(output) for output in row["outputs"]),
                    "shared": tuple(_output(output) for output in row["shared"]),
                    "traits": tuple(row["traits"]),
                }
            )
            for row in content["rows"]
        )
        return cls(**{**content, "rows": rows, "channels": tuple(content["channels"])})


def _short_name(platform: str, rows: Sequence[PlannedRow]) -> str:
    """`linux_64_cuda11.2_mkl_py3.12`: the platform, and what all of some rows have."""
    kinds = {f"cuda{row.cuda}" if row.cuda else "cpu" for row in rows}
    pythons = {row.python for row in rows}
    traits = [trait for trait in rows[0].traits if all(trait in row.traits for row in rows)]
    shared = [[*some] if len(some) == 1 else [] for some in (kinds, {f"py{python}" for python in pythons if python})]
    return "_".join([platform.replace("-", "_", 1), *shared[0], *traits, *(shared[1] if None not in pythons else [])])


def _members(value: PlannedOutput | PlannedRow | PlannedConfiguration) -> dict[str, Any]:
    return {member.name: getattr(value, member.name) for member in fields(value)}


def _values(content: Mapping[str, Any]) -> Mapping[str, str]:
    if not any(isinstance(value, dict) for value in content.values()):
        return content  # most have no numbers, and --list must be fast
    from feedstock_tools.variants.model import values_from_json

    return values_from_json(content)


def _output(content: Mapping[str, Any]) -> PlannedOutput:
    lists = {key: tuple(content[key]) for key in ("siblings", "track_features", "staging", "needs", "runs")}
    return PlannedOutput(**{**content, **lists})


_SHORT = re.compile(
    r"(?P<platform>[a-z]+_[a-z0-9]+)(?:_(?P<cpu>cpu)|_cuda(?P<cuda>[0-9.]+))?(?P<traits>(?:_[^_]+)*?)"
    r"(?:_py(?P<python>[0-9.]+))?"
)
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ShortName:
    """`<platform>[_cpu|_cuda<version>][_<value>…][_py<version>]`: the values that a configuration must match.

    A version matches those that continue it: `cuda12` matches 12.0 and 12.9, `py3.1` only 3.1. A value is a trait that
    some rows have.
    """

    platform: str
    cpu: bool = False
    cuda: str | None = None
    python: str | None = None
    traits: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> ShortName | None:
        """None if the text does not have that form.

        >>> ShortName.parse("linux_64_cuda11.2_mkl_py3.12")
        ShortName(platform='linux_64', cpu=False, cuda='11.2', python='3.12', traits=frozenset({'mkl'}))
        """
        match = _SHORT.fullmatch(text)
        if not match:
            return None
        traits = frozenset(match["traits"].split("_")[1:])
        return cls(match["platform"], match["cpu"] is not None, match["cuda"], match["python"], traits)

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
            and self.traits.issubset(row.traits)
        )
        return replace(configuration, rows=rows) if rows else None


def _continues(version: str | None, start: str) -> bool:
    parts = start.split(".")
    return version is not None and version.split(".")[: len(parts)] == parts


def select(names: Sequence[str], configurations: Sequence[PlannedConfiguration]) -> tuple[PlannedConfiguration, ...]:
    """The configurations selected by names, in the order of the names, each once.

    A name is, in this order: the name of a file in `.ci_support` without `.yaml`, a glob over those names or, if none
    of them matches, over short names, without a Python and then with one; a short name.
    Two short names that select different rows of one configuration select both. A short name that selects several rows
    is reported aside: it may have selected one before others were added.

    Raises:
        InputError: a name matches none; all such names at once, each with the nearest ones.
    """
    chosen: dict[str, PlannedConfiguration] = {}
    mistakes: list[Mistake] = []
    for name in dict.fromkeys(names):
        matching = matches(name, configurations)
        if not matching:
            mistakes.append(_unknown(name, configurations))
        elif not _GLOB.search(name) and [each.name for each in matching] != [name]:
            _say_several(name, matching)
        for configuration in matching:
            earlier = chosen.get(configuration.name)
            chosen[configuration.name] = _both(earlier, configuration) if earlier else configuration
    if mistakes:
        raise InputError.of(mistakes)
    return tuple(chosen.values())


#: The most keys that tell rows apart.
_MOST_TRAITS = 3
_NOT_IN_A_TRAIT = re.compile(r"[^A-Za-z0-9.+-]+")


def with_short_names(
    configurations: Sequence[PlannedConfiguration], without: Collection[str] = ()
) -> tuple[PlannedConfiguration, ...]:
    """All configurations of a feedstock with the names that select them, and each of their rows, alone.

    What tells rows of one platform, CUDA version and Python apart are the fewest keys, and of those the ones with the
    shortest values. What no short name selects alone keeps its own.

    Args:
        without: keys that tell nothing apart.
    """
    kinds: dict[tuple[str, str | None], list[PlannedRow]] = {}
    for configuration in configurations:
        for row in configuration.rows:
            kinds.setdefault((configuration.platform, row.cuda), []).append(row)
    traits = {name: texts for rows in kinds.values() for name, texts in _traits_of(rows, without).items()}
    told_apart = [
        replace(each, rows=tuple(replace(row, traits=traits[row.name]) for row in each.rows)) for each in configurations
    ]
    counts = rows_by_short_name(told_apart)

    def named(platform: str, rows: Sequence[PlannedRow], otherwise: str) -> str:
        name = _short_name(platform, rows) if rows else otherwise
        return name if counts[name] == len(rows) else otherwise

    return tuple(
        replace(
            each,
            whole_name=named(each.platform, each.rows, each.name),
            rows=tuple(replace(row, short_name=named(each.platform, [row], row.name)) for row in each.rows),
        )
        for each in told_apart
    )


def _traits_of(rows: Sequence[PlannedRow], without: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The traits of rows for one platform and CUDA version, by the rows' names; none where nothing tells them apart."""
    keys: tuple[str, ...] = ()
    if len({row.python for row in rows}) < len(rows):
        keys = _telling_apart(rows, without)
    return {row.name: tuple(_trait(key, row.values.get(key, "")) for key in keys) for row in rows}


def _telling_apart(rows: Sequence[PlannedRow], without: Collection[str]) -> tuple[str, ...]:
    names = dict.fromkeys(key for row in rows for key in row.values if key not in without)
    texts = {key: [_trait(key, row.values.get(key, "")) for row in rows] for key in names}
    varying = {key: column for key, column in texts.items() if len(set(column)) > 1}
    for number in range(1, _MOST_TRAITS + 1):
        found = [
            keys
            for keys in combinations(sorted(varying), number)
            if len({(row.python, frozenset(varying[key][at] for key in keys)) for at, row in enumerate(rows)})
            == len(rows)
        ]
        if found:
            return min(found, key=lambda keys: (sum(len("".join(varying[key])) for key in keys), keys))
    return ()


def _trait(key: str, value: str) -> str:
    """A value as a short name has it: with its key where it is no word of its own.

    >>> _trait("blas_impl", "mkl"), _trait("ffnvcodec_headers", "12.1.*"), _trait("python", "3.9.* *_73_pypy")
    ('mkl', 'ffnvcodec-headers12.1', 'pypy')
    """
    text = value.rpartition("_")[2] if key == "python" else value.removesuffix(".*")
    is_word = text[:1].isalpha() and text not in ("None", "True", "False", "true", "false", "cpu")
    return _NOT_IN_A_TRAIT.sub("-", text if is_word else f"{key}{text}")


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
            words = [f"_{trait}" for trait in row.traits]
            traits = ["".join(some) for number in range(len(words) + 1) for some in combinations(words, number)]
            counts.update(f"{platform}{kind}{trait}{py}" for kind in ("", *kinds) for trait in traits for py in pythons)
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


def _say_several(name: str, matching: Sequence[PlannedConfiguration]) -> None:
    number = sum(len(configuration.rows) for configuration in matching)
    if number > 1:
        builds = [row.short_name for configuration in matching for row in configuration.rows]
        several = number > _FEW and len(matching) > 1
        few = some_of([each.short_name for each in matching] if several else builds, _FEW)
        say_aside(f"{name} means {number} builds: {few}")


def matches(name: str, configurations: Sequence[PlannedConfiguration]) -> list[PlannedConfiguration]:
    """The configurations that one name selects."""
    exact = [configuration for configuration in configurations if configuration.name == name]
    if exact:
        return exact
    if _GLOB.search(name):
        return _by_glob(name, configurations)
    short = ShortName.parse(name)
    return [chosen for configuration in configurations if (chosen := short.choose(configuration))] if short else []


def _by_glob(glob: str, configurations: Sequence[PlannedConfiguration]) -> list[PlannedConfiguration]:
    """Those whose names match a glob; where there is none, whose short names do, else with the rows whose do."""
    if by_file := [configuration for configuration in configurations if fnmatchcase(configuration.name, glob)]:
        return by_file
    if short := [configuration for configuration in configurations if fnmatchcase(configuration.short_name, glob)]:
        return short
    rows = [tuple(row for row in each.rows if fnmatchcase(row.short_name, glob)) for each in configurations]
    return [replace(each, rows=some) for each, some in zip(configurations, rows, strict=True) if some]


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
