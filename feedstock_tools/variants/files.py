"""Read a variant file (`conda_build_config.yaml`) for a platform.

(conda_build/variants.py: parse_config_file, validate_spec; utils.py: trim_empty_keys.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.variants.model import Origin, VariantConfig
from feedstock_tools.variants.namespace import Namespace, default_variant
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import select_lines
from feedstock_tools.yaml_reading.quick import parse_variant_yaml

#: Keys whose entries grow from file to file (conda_build/variants.py, DEFAULT_VARIANTS["extend_keys"]).
EXTENDING_KEYS = ("pin_run_as_build", "ignore_version", "ignore_build_only_deps", "extend_keys")

#: Keys in one zip group; the largest of conda-forge has nine.
_LARGEST_GROUP = 100
_X_X = {"min_pin": "x.x", "max_pin": "x.x"}
_TOP_LEVEL_KEY = re.compile(r"^([^\s#:\-][^:]*?)\s*:(?:\s|$)")


def defaults(platform: Platform, rules: CondaBuildRules | None = None) -> VariantConfig:
    """The built-in defaults that every configuration of conda-build begins with."""
    return VariantConfig(
        values={key: (value,) for key, value in default_variant(platform.subdir).items()},
        pin_run_as_build={"python": _X_X, **({"r-base": _X_X} if (rules or CondaBuildRules()).r_base_pinned else {})},
        extend_keys=EXTENDING_KEYS,
        extended={"ignore_version": (), "ignore_build_only_deps": ("python", "numpy")},
        origins={key: (Origin("conda-build's defaults"),) for key in default_variant(platform.subdir)},
    )


def load(
    path: Path,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    rules: CondaBuildRules | None = None,
    within: Path | None = None,
) -> VariantConfig:
    """Read a variant file for `platform`.

    Args:
        environ: the environment variables that selectors may read (conda-smithy sets a few); never this process's.
        rules: the version of conda-build to follow; default the newest.
        within: the folder that no link may lead out of, as for `reading.open_file`.

    Raises:
        InputError: it cannot be read, a selector is invalid, or the selected lines are not a valid variant file; with
            lines.
    """
    return parse(read_text(path, within=within), path, platform, environ=environ, rules=rules)


def parse(
    text: str,
    path: Path | None,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    rules: CondaBuildRules | None = None,
) -> VariantConfig:
    """Like `load`, for a string; `path` is for messages and origins."""
    return _read(text, path, platform, tuple((environ or {}).items()), rules or CondaBuildRules())


@lru_cache(maxsize=32)
def _read(
    text: str, path: Path | None, platform: Platform, environ: tuple[tuple[str, str], ...], rules: CondaBuildRules
) -> VariantConfig:
    """Cached, since a process that rerenders many feedstocks reads the same pinning each time."""
    content, lines = select_yaml(text, path, platform, dict(environ), rules)
    groups = content.get("zip_keys")
    if rules.refuses_empty_groups and isinstance(groups, list) and "" in groups:
        raise InputError(
            f"selectors leave a zip group without keys on {platform}",
            path=path,
            line=lines.get("zip_keys"),
            hint="Add the selectors of the group's keys to its dash.",
        )
    config = config_of(content, path, lines)
    _check(config, path, lines)
    return config


def select_yaml(
    text: str, path: Path | None, platform: Platform, environ: Mapping[str, str], rules: CondaBuildRules
) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The mapping of a file with selectors for a platform, without empty keys, and the line of each key.

    Raises:
        InputError: selectors or YAML are invalid, or it is not a mapping.
    """
    selected, numbers = select_lines(text, Namespace(platform.subdir, platform.subdir, {}, environ, rules), rules, path)
    content, lines = _parsed(selected, path)
    return content, {key: numbers[line] for key, line in lines.items() if line < len(numbers)}


@lru_cache(maxsize=64)
def _parsed(selected: str, path: Path | None) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    content = parse_variant_yaml(selected, path)
    if content is None or content == "":
        content = {}
    if not isinstance(content, dict):
        raise InputError("must be a mapping of keys to values", path=path)
    trim_empty(content)
    lines = {}
    for number, line in enumerate(selected.split("\n")):
        match = _TOP_LEVEL_KEY.match(line)
        if match:
            lines[match.group(1).strip("'\"")] = number
    return MappingProxyType(content), MappingProxyType(lines)


def trim_empty(mapping: dict[str, Any]) -> None:
    """Remove the keys that selectors left without values, in place."""
    for key, value in list(mapping.items()):
        if isinstance(value, dict):
            trim_empty(value)
        if value in ("", [], {}) or value is None:
            del mapping[key]
    groups = mapping.get("zip_keys")
    if groups is not None and not any(groups):
        del mapping["zip_keys"]


def config_of(
    content: Mapping[str, Any], path: Path | None = None, lines: Mapping[str, int] | None = None
) -> VariantConfig:
    """A parsed mapping as a configuration; only the shapes of the values are checked.

    Raises:
        InputError: a value is neither a string nor a list of strings nor (where allowed) a mapping.
    """
    where = lines or {}
    own = tuple(dict.fromkeys(_texts("extend_keys", content.get("extend_keys", []), path, where)))
    extending = {*EXTENDING_KEYS, *own}
    values: dict[str, tuple[str, ...]] = {}
    extended: dict[str, tuple[str, ...]] = {}
    mappings: dict[str, Mapping[str, str]] = {}
    pins: dict[str, Mapping[str, str]] = {}
    for key, value in content.items():
        if key in ("zip_keys", "extend_keys"):
            continue
        if key == "pin_run_as_build":
            pins = _pins(value, path, where)
        elif isinstance(value, dict):
            mappings[key] = value
        elif key in extending:
            extended[key] = _texts(key, value, path, where)
        else:
            values[key] = _texts(key, value, path, where)
    name = path.name if path else "given"
    return VariantConfig(
        values=values,
        zip_keys=_groups(content.get("zip_keys", []), path, where),
        pin_run_as_build=pins,
        extend_keys=own,
        extended=extended,
        mappings=mappings,
        origins={key: (Origin(name, path, where.get(key)),) for key in content},
    )


def _texts(key: str, value: Any, path: Path | None, lines: Mapping[str, int]) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    flat = tuple(item[0] if isinstance(item, list) and len(item) == 1 else item for item in items)
    if not all(isinstance(item, str) for item in flat):
        raise InputError(f"the values of '{key}' must be a list of plain values", path=path, line=lines.get(key))
    return flat


def _pins(value: Any, path: Path | None, lines: Mapping[str, int]) -> dict[str, Mapping[str, str]]:
    if not isinstance(value, dict) or not all(isinstance(pin, (dict, str)) for pin in value.values()):
        raise InputError(
            "pin_run_as_build must be a mapping of mappings", path=path, line=lines.get("pin_run_as_build")
        )
    # conda-build uses a single string for both ends.
    pins = {name: {"min_pin": pin, "max_pin": pin} if isinstance(pin, str) else pin for name, pin in value.items()}
    return {name: {str(key): str(text) for key, text in pin.items()} for name, pin in pins.items()}


def _groups(value: Any, path: Path | None, lines: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    groups = [group for group in value if group] if isinstance(value, list) else [value]
    if all(isinstance(group, str) for group in groups):
        groups = [groups] if groups else []
    if not all(isinstance(group, list) and all(isinstance(key, str) for key in group) for group in groups):
        raise InputError("zip_keys must be a list of lists of keys", path=path, line=lines.get("zip_keys"))
    return tuple(tuple(group) for group in groups)


def _check(config: VariantConfig, path: Path | None, lines: Mapping[str, int]) -> None:
    mistakes = [Mistake(message, path, lines.get(key, lines.get("zip_keys"))) for key, message in faults(config)]
    if mistakes:
        raise InputError.of(mistakes)


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
