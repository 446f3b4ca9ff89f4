"""From a configuration to its rows: one value for every key, so that each can be rendered and built alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configurations.configuration import Configuration

#: Keys of a configuration that are instructions for a CI job and span no variants: only their first value counts.
NO_LOOP = frozenset({"channel_sources", "channel_targets", "docker_image", "github_actions_labels", "target_platform"})


@dataclass(frozen=True, slots=True)
class Row:
    """One variant of a configuration: a value for each key, and a name that distinguishes it from the others.

    The name is the configuration's if that has only one row; else it ends in the values that differ: `…_py3.12`.
    """

    name: str
    values: Mapping[str, str]


def cuda_version(values: Mapping[str, str]) -> str | None:
    """The CUDA version that a row compiles for; None is a CPU build.

    conda-forge's pinning writes the CPU row as the string `None` (older ones as an empty value).
    """
    version = values.get("cuda_compiler_version", "")
    return None if version in ("", "None") else version


def python_version(values: Mapping[str, str]) -> str | None:
    """The Python of a row, `3.12` for a pin such as `3.12.* *_cpython`; None if the row names no Python."""
    pin = values.get("python", "")
    numbers = pin.split(" ")[0].removesuffix(".*").split(".")
    return ".".join(numbers[:2]) if pin else None


def rows_of(configuration: Configuration) -> tuple[Row, ...]:
    """Every row of a configuration, zipped keys together, in the order of the file.

    Raises:
        InputError: keys that are zipped have lists of different lengths.
    """
    choices = [dict(choice) for choice in _combinations(configuration)]
    varying = [key for key in configuration.values if len({choice.get(key) for choice in choices}) > 1]
    rows = [Row(_row_name(configuration.name, choice, varying), choice) for choice in choices]
    return tuple({row.name: row for row in rows}.values())  # a list may repeat a value


def with_rows(configuration: Configuration, names: Collection[str]) -> Configuration:
    """A configuration without the values that only other rows have; itself if there are none.

    A configuration has all combinations of its values: chosen rows that are only some of them bring the others along.

    Args:
        names: those of the chosen rows, at least one.

    >>> from feedstock_tools.platforms import Platform
    >>> two = Configuration("a", Platform.parse("linux-64"), {"python": ("3.11.*", "3.12.*"), "zlib": ("1",)})
    >>> with_rows(two, ["a_py3.12"]).values
    {'python': ('3.12.*',), 'zlib': ('1',)}
    """
    rows = rows_of(configuration)
    chosen = [row.values for row in rows if row.name in names]
    if len(chosen) == len(rows):
        return configuration
    values = dict(configuration.values)
    zipped = [[key for key in group if key in values] for group in configuration.zip_keys]
    single = [[key] for key in values if key not in NO_LOOP and not any(key in group for group in zipped)]
    for group in (*zipped, *single):
        wanted = {tuple(row[key] for key in group) for row in chosen}
        kept = [together for together in zip(*(values[key] for key in group), strict=True) if together in wanted]
        values.update(zip(group, zip(*kept, strict=True), strict=True) if kept else ())
    return replace(configuration, values=values)


def _combinations(configuration: Configuration) -> Iterator[dict[str, str]]:
    axes: list[list[dict[str, str]]] = []
    zipped: set[str] = set()
    for group in configuration.zip_keys:
        keys = [key for key in group if key in configuration.values]
        lengths = {len(configuration.values[key]) for key in keys}
        if len(lengths) > 1:
            counts = ", ".join(f"{key} has {len(configuration.values[key])}" for key in keys)
            raise InputError(f"{configuration.name}: zipped keys must have lists of equal length: {counts}")
        zipped.update(keys)
        rows = zip(*(configuration.values[key] for key in keys), strict=True)
        axes.append([dict(zip(keys, row, strict=True)) for row in rows])
    for key, values in configuration.values.items():
        if key not in zipped:
            axes.append([{key: value} for value in (values[:1] if key in NO_LOOP else values)])
    for parts in product(*(axis for axis in axes if axis)):
        yield {key: value for part in parts for key, value in part.items()}


def _row_name(configuration: str, values: Mapping[str, str], varying: list[str]) -> str:
    parts = [configuration]
    if "python" in varying:
        parts.append(f"py{python_version(values)}")
    followers = {"python", *(key for key in varying if _follows_python(key))}
    parts += [f"{key}{values[key]}" for key in varying if key not in followers]
    return "_".join("".join(char if char.isalnum() or char in "._-" else "_" for char in part) for part in parts)


def _follows_python(key: str) -> bool:
    """Keys that conda-forge zips with the Python version, which therefore determines them."""
    return key in ("numpy", "python_impl", "is_python_min", "is_freethreading", "is_abi3")
