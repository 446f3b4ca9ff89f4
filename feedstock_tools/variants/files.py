"""Read variant files for a platform: `conda_build_config.yaml`, and the `variants.yaml` beside a `recipe.yaml`.

(conda_build/variants.py: parse_config_file, validate_spec; utils.py: trim_empty_keys.) The lists of a `variants.yaml`
have `if`, `then` and `else`, and it is typed: an unquoted whole number stays one, even in `.ci_support`.
(rattler_build_conda_compat/loader.py: parse_recipe_config_file.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SETTINGS, read_text
from feedstock_tools.variants.model import EXTENDING_KEYS, Origin, VariantConfig, WholeNumber, faults
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import INVALID, Namespace, default_variant, evaluate, select_lines
from feedstock_tools.yaml_reading.nodes import compose, is_mapping, items, members, pairs, place_of
from feedstock_tools.yaml_reading.quick import parse_variant_yaml

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
    """The mapping of a file with selectors for a platform, without empty keys, and the line of each key."""
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
    """A parsed mapping as a configuration; only the shapes of the values are checked."""
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


_WHOLE = re.compile(r"[-+]?[0-9]+")
_FLAGS = {word: word.lower() for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


def load_conditional(
    path: Path,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    rules: CondaBuildRules | None = None,
    within: Path | None = None,
) -> VariantConfig:
    """Read a `variants.yaml` for `platform`.

    Args:
        environ: the environment variables that conditions may read; never this process's.
        within: the folder that no link may lead out of, as for `reading.open_file`.

    Raises:
        InputError: it cannot be read, a condition is invalid, or a value is neither plain nor a list of plain values.
    """
    document = compose(read_text(path, LARGEST_SETTINGS, within=within), path)
    if document is None:
        return VariantConfig({})
    if not is_mapping(document):
        raise InputError("must be a mapping of keys to values", path=path)
    namespace = Namespace(platform.subdir, platform.subdir, {}, environ or {}, rules or CondaBuildRules())
    reader = _Reader(path, namespace)
    content, lines = {}, {}
    for key, value in pairs(document):
        read = reader.value(value)
        if read != []:
            content[str(key.value)] = _flat(read)
            lines[str(key.value)] = place_of(key).line
    return config_of(content, path, lines)


def _flat(value: Any) -> Any:
    """Lists of lists become one list, of `zip_keys` too: there are no two groups in such a file."""
    if isinstance(value, dict):
        return {key: _flat(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [item for part in value for item in (part if isinstance(part, list) else [part])]
    return value


class _Reader:
    """Turns YAML's nodes into strings, lists and mappings, taking the branches whose conditions hold."""

    def __init__(self, path: Path, namespace: Namespace) -> None:
        self.path = path
        self.namespace = namespace

    def value(self, node: Any) -> Any:
        if node.id == "mapping":
            return {str(key.value): self.value(item) for key, item in pairs(node)}
        if node.id == "sequence":
            return list(self._items(node))
        return self._scalar(node)

    def _scalar(self, node: Any) -> str:
        text = str(node.value)
        if node.style:
            return text
        if text in _NOTHING:
            raise self._fail(node, "a value is missing")
        if _WHOLE.fullmatch(text):
            return WholeNumber(int(text)) if len(text) < 1000 else text
        return _FLAGS.get(text, text)

    def _items(self, node: Any) -> Iterator[Any]:
        """The items of a list (or a single item in its place), with conditions resolved."""
        for item in items(node) if node.id == "sequence" else (node,):
            inside = members(item)
            if "if" not in inside:
                yield self.value(item)
                continue
            try:
                is_true = evaluate(str(inside["if"].value), self.namespace)
            except INVALID as error:
                message = f"the condition '{inside['if'].value}' cannot be evaluated: {error}"
                raise self._fail(inside["if"], message) from error
            branch = inside.get("then" if is_true else "else")
            if branch is not None:
                yield from self._items(branch)

    def _fail(self, node: Any, message: str) -> InputError:
        place = place_of(node)
        return InputError(message, path=self.path, line=place.line, column=place.column)
