"""The files in `.ci_support`: one configuration of variant keys a file, as conda-smithy writes them, and its rows.

They are written as PyYAML's `dump(…, default_flow_style=False)` does, without its cost per scalar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.reading import CI_SUPPORT, LARGEST_SETTINGS, read_text
from feedstock_tools.variants.model import VariantConfig, WholeNumber
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.yaml_reading.nodes import parse_with_numbers


@dataclass(frozen=True, slots=True)
class Configuration:
    """One CI job's variants: the file `<name>.yaml`.

    `values` are lists of strings, as YAML's base schema reads them (`true` is the string "true"), and unquoted whole
    numbers have a type of their own.
    """

    name: str
    platform: Platform
    values: Mapping[str, tuple[str, ...]]
    zip_keys: tuple[tuple[str, ...], ...] = ()
    pin_run_as_build: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: Path, *, within: Path | None = None) -> Configuration:
        """Read a file of `.ci_support`.

        Args:
            within: the folder of the feedstock, which no link may lead out of.

        Raises:
            InputError: it cannot be read, is not a mapping of lists, or its name does not begin with a platform or
                cannot be shown in a line.
        """
        if not path.stem.isprintable():
            raise InputError("the name of a configuration has a line break or a control character", path=path)
        content = parse_with_numbers(read_text(path, LARGEST_SETTINGS, within=within), path, WholeNumber)
        if not isinstance(content, dict):
            raise InputError("a configuration must be a mapping of lists", path=path)
        zips: Any = content.pop("zip_keys", [])
        pins: Any = content.pop("pin_run_as_build", {})
        if not isinstance(pins, dict) or not all(isinstance(pin, dict) for pin in pins.values()):
            raise InputError("pin_run_as_build must be a mapping of mappings", path=path)
        if not isinstance(zips, list) or not all(isinstance(group, list) for group in zips):
            raise InputError("zip_keys must be a list of lists", path=path)
        values: dict[str, tuple[str, ...]] = {}
        for key, value in content.items():
            items = value if isinstance(value, list) else [value]
            if not all(isinstance(item, str) for item in items):
                raise InputError(f"the values of '{key}' must be plain strings", path=path)
            values[str(key)] = tuple(items)
        return cls(
            name=path.stem,
            platform=platform_of(path, values),
            values=values,
            zip_keys=tuple(tuple(str(key) for key in group) for group in zips),
            pin_run_as_build={str(name): {str(k): str(v) for k, v in pin.items()} for name, pin in pins.items()},
        )

    def to_bytes(self, *, booleans: Booleans = "plain") -> bytes:
        """The file's content, byte for byte as conda-smithy dumps it.

        `booleans`: newer versions write `true` where older ones wrote `'true'`.
        """
        content: dict[str, Any] = {key: list(values) for key, values in self.values.items()}
        if self.zip_keys:
            content["zip_keys"] = [list(group) for group in self.zip_keys]
        if self.pin_run_as_build:
            content["pin_run_as_build"] = {name: dict(pin) for name, pin in self.pin_run_as_build.items()}
        return _dump_mapping(content, booleans=booleans)


def platform_of(path: Path, values: Mapping[str, tuple[str, ...]]) -> Platform:
    """The platform, from the file's name, since noarch feedstocks have no `target_platform`; before 2020 names held
    `osx` alone."""
    system, _, rest = path.stem.partition("_")
    named = f"{system}-{rest.partition('_')[0]}"
    for subdir in (named, *values.get("target_platform", ()), f"{system}-64"):
        if subdir in KNOWN_SUBDIRS:
            return Platform.parse(subdir)
    raise InputError("the name of a configuration must begin with its platform, such as linux_64_", path=path)


def read_configurations(feedstock: Path) -> tuple[Configuration, ...]:
    """The configurations of a feedstock, ordered by name; an empty tuple if there are none.

    Raises:
        InputError: a file is not a configuration; with file and line.

    >>> [one.name for one in read_configurations(Path("solver-feedstock"))][:1]
    ['linux_64_cuda_compiler_version12.9']
    """
    files = sorted((feedstock / CI_SUPPORT).glob("*.yaml"))
    return tuple(Configuration.from_file(path, within=feedstock) for path in files)


#: How the strings `true` and `false` are written: without quotes, both as `true` (a fault of one version), or quoted.
Booleans = Literal["quoted", "all true", "plain"]

_WIDTH = 80


@lru_cache(maxsize=16384, typed=True)
def dump_scalar(value: str | bool | int | None) -> str:
    """A value as PyYAML writes it where nothing makes it fold."""
    import yaml

    rendered = yaml.dump(value, default_flow_style=True, width=float("inf"))
    return rendered.removesuffix("\n").removesuffix("\n...")


def dump_whole(value: Mapping[str, Any]) -> str:
    """A mapping as PyYAML writes it, with keys in the given order and without anchors for equal values."""
    import yaml

    class Dumper(yaml.Dumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    return str(yaml.dump(value, Dumper=Dumper, default_flow_style=False, sort_keys=False))


def _text(text: str, booleans: Booleans) -> str:
    if isinstance(text, WholeNumber):
        return text
    if booleans != "quoted" and text in ("true", "false"):
        return "true" if booleans == "all true" else text
    return dump_scalar(text)


def _needs_yaml(value: Any) -> bool:
    """Only the form of a string that PyYAML may fold or write over several lines depends on its column."""
    if isinstance(value, str):
        return len(value) > _WIDTH - 30 or "\n" in value or not value.isascii()
    if isinstance(value, Mapping):
        return any(_needs_yaml(k) or _needs_yaml(v) for k, v in value.items())
    return any(_needs_yaml(item) for item in value)


def _dump_mapping(content: Mapping[str, Any], *, booleans: Booleans) -> bytes:
    """The YAML text of lists of strings, of `zip_keys` (lists of lists) and `pin_run_as_build` (mappings of mappings).

    Keys are sorted except in `pin_run_as_build`, which keeps the caller's order. `booleans` determines how the
    strings `true` and `false` are written.
    """
    if _needs_yaml(content):
        return _dump_with_yaml(content, booleans)
    lines: list[str] = []
    for key in sorted(content):
        value = content[key]
        lines.append(f"{dump_scalar(key)}:")
        if isinstance(value, Mapping):
            for name, pin in value.items():
                lines.append(f"  {dump_scalar(name)}:")
                lines.extend(f"    {dump_scalar(k)}: {dump_scalar(v)}" for k, v in pin.items())
            continue
        for item in value:
            if isinstance(item, str):
                lines.append(f"- {_text(item, booleans)}")
            else:
                marks = ["- -", *["  -"] * (len(item) - 1)]
                lines.extend(f"{mark} {dump_scalar(member)}" for mark, member in zip(marks, item, strict=True))
    return ("\n".join(lines) + "\n").encode() if lines else b"{}\n"


def _dump_with_yaml(content: Mapping[str, Any], booleans: Booleans) -> bytes:
    def typed(value: Any) -> Any:
        if isinstance(value, WholeNumber):
            return int(value)
        if isinstance(value, str):
            plain = booleans != "quoted" and value in ("true", "false")
            return (value == "true" or booleans == "all true") if plain else value
        return [typed(item) for item in value] if not isinstance(value, Mapping) else dict(value)

    return dump_whole({key: typed(content[key]) for key in sorted(content)}).encode()


#: Keys of a configuration that are instructions for a CI job and span no variants: only their first value counts.
NO_LOOP = frozenset({"channel_sources", "channel_targets", "docker_image", "github_actions_labels", "target_platform"})
#: `python`, and keys that conda-forge zips with it, whose values it therefore determines.
_WITH_PYTHON = frozenset({"python", "numpy", "python_impl", "is_python_min", "is_freethreading", "is_abi3"})


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
    """Every row of a configuration, zipped keys together, in the order of the file."""
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
    parts += [f"{key}{values[key]}" for key in varying if key not in _WITH_PYTHON]
    return "_".join("".join(char if char.isalnum() or char in "._-" else "_" for char in part) for part in parts)


#: The variant files beside a recipe.yaml, of which rattler-build reads the first that exists.
_OWN_FILES = ("variants.yaml", "conda_build_config.yaml")
_WORD = re.compile(r"\w+")
#: Keys that a recipe uses by the name of a function: `c_compiler_version` by `compiler('c')`.
_BY_FUNCTION = re.compile(r"_(compiler|stdlib)(?:_version)?$|^(cdt)_")

#: Returns the keys that a recipe uses with some variants, and all those that it mentions.
_Used = Callable[[Configuration, VariantConfig], tuple[frozenset[str], frozenset[str]]]


def configured_variants(configuration: Configuration) -> VariantConfig:
    """The values of a configuration alone."""
    return VariantConfig(configuration.values, configuration.zip_keys, pin_run_as_build=configuration.pin_run_as_build)


def completed_variants(
    folder: Path, configuration: Configuration, rules: CondaBuildRules | None = None
) -> VariantConfig:
    """The values of a configuration, and those of the recipe's own variant file for keys that it lacks.

    rattler-build uses the own file's zip groups only if no other file has any (config.rs, merge); those whose keys
    a configuration has limited to fewer values than the rest are left out here.

    Args:
        folder: the folder of the `recipe.yaml`.
    """
    configured = configured_variants(configuration)
    path = _own_file(folder)
    if path is None:
        return configured
    from feedstock_tools.variants.files import load, load_conditional

    read = load_conditional if path.name == _OWN_FILES[0] else load
    own = read(path, configuration.platform, rules=rules, within=folder)
    values = {**own.values, **configured.values}
    zipped = (group for group in own.zip_keys if len({len(values[key]) for key in group if key in values}) < 2)
    return replace(configured, values=values, zip_keys=configured.zip_keys or tuple(zipped))


def with_own_values(folder: Path, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Complete configurations: with the values that the recipe uses from its own variant file.

    Without a `recipe.yaml` they are returned unchanged. If the recipe cannot be rendered, all keys that it mentions
    count.

    Args:
        folder: the folder of the recipe.
    """
    path = folder / "recipe.yaml"
    if _own_file(folder) is None or not path.is_file():
        return tuple(configurations)
    from feedstock_tools.reading import read_text

    words = frozenset(_WORD.findall(read_text(path, within=folder).replace("-", "_")))
    used = _used_by(folder)
    return tuple(
        _completed(configuration, completed_variants(folder, configuration), words, used)
        for configuration in configurations
    )


def _own_file(folder: Path) -> Path | None:
    return next((folder / name for name in _OWN_FILES if (folder / name).is_file()), None)


def _completed(configuration: Configuration, both: VariantConfig, words: frozenset[str], used: _Used) -> Configuration:
    """A configuration with the keys of the own variant file that the recipe uses.

    Args:
        both: the values of the configuration, and those of the own file for other keys.
        words: all words of the recipe's text; a key that is not among them is unused, which saves a rendering.
    """
    configured = configuration.values
    candidates = [key for key in both.values if key not in configured and _may_use(key, words)]
    values = dict(configured)
    if candidates:
        try:
            used_keys, mentioned = used(configuration, both)
        except InputError:  # rendering the rows reports this; until then every key may count
            used_keys, mentioned = frozenset(candidates), frozenset()
        zipped = (group for group in both.zip_keys if not used_keys.union(configured).isdisjoint(group))
        looped = used_keys.union(*zipped)
        values |= {key: both.values[key] for key in candidates if key in looped}
        # A key that no built output uses either skips the outputs with each of its values or makes no difference.
        values |= {key: both.values[key][:1] for key in candidates if key in mentioned - looped}
    groups = (tuple(key for key in group if key in values) for group in both.zip_keys)
    return replace(configuration, values=values, zip_keys=configuration.zip_keys or tuple(filter(None, groups)))


def _may_use(key: str, words: frozenset[str]) -> bool:
    function = _BY_FUNCTION.search(key)
    return key.replace("-", "_") in words or (function is not None and (function[1] or function[2]) in words)


def _used_by(folder: Path) -> _Used:
    from feedstock_tools.recipe.v1.recipe import render_recipe_v1
    from feedstock_tools.recipe.v1.variants import mentioned_variables
    from feedstock_tools.recipe.v1_engine import read_v1
    from feedstock_tools.yaml_reading.nodes import parse_texts

    recipe = cache(read_v1)

    def used(configuration: Configuration, both: VariantConfig) -> tuple[frozenset[str], frozenset[str]]:
        read = recipe(folder / "recipe.yaml")
        mentioned = mentioned_variables(parse_texts(read.text, read.path))
        outputs = render_recipe_v1(read, both, configuration.platform).outputs
        return _all(output.used.own for output in outputs), _all(mentioned.values())

    return used


def _all(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*parts)
