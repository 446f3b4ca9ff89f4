"""YAML as conda-build reads variant files: every scalar a text, no aliases, and a bound on size."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants.model import WholeNumber

__all__ = [
    "DEEPEST",
    "LARGEST_EXPANSION",
    "LARGEST_FILE",
    "LARGEST_SETTINGS",
    "MOST_MERGED",
    "is_file",
    "parse_plain_yaml",
    "parse_settings",
    "parse_yaml",
    "read_plain_yaml",
    "read_text",
    "read_values_yaml",
]

#: No recipe or variant file of conda-forge comes near this many bytes; more is a mistake or an attack.
LARGEST_FILE = 512 * 1024
#: The same of a conda-forge.yml, a configuration or a variants.yaml, whose every key is looked at more than once.
LARGEST_SETTINGS = 256 * 1024
#: Values in one file with its aliases followed; conda-forge's pinning has a few thousand.
LARGEST_EXPANSION = 500_000
#: Keys that merges bring into one mapping.
MOST_MERGED = 10_000
#: Brackets within brackets, or characters that indent a line; no file of conda-forge comes near it.
DEEPEST = 400
#: What rattler-build takes for a number where it has no quotes.
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")


def is_file(path: Path) -> bool:
    """Whether a path that a recipe names is a file; one that no file system takes, being too long, is none."""
    return os.path.isfile(path)  # noqa: PTH113 - of a name that is too long pathlib raises the system's error


def read_text(path: Path, largest: int = LARGEST_FILE) -> str:
    """The text of a file.

    Raises:
        InputError: it is missing, no file, larger than `largest` bytes, holds NUL bytes or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error
    if len(content) > largest:
        raise InputError(f"is larger than {largest // 1024} KiB", path=path)
    if b"\0" in content:
        raise InputError("is not a text file: it holds NUL bytes", path=path)
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not a text file in UTF-8", path=path, line=line) from error


def parse_plain_yaml(text: str, path: Path | None = None) -> Any:
    """Parse YAML's base schema: mappings, lists and texts.

    Raises:
        InputError: not YAML, nested too deep, more than one document, or aliases that grow without bound.
    """
    import yaml

    return _loaded(text, path, getattr(yaml, "CBaseLoader", yaml.BaseLoader), only=True)


def parse_settings(text: str, path: Path | None = None) -> Any:
    """Parse the first document of a YAML file with YAML's usual types: numbers, truth values and nothing besides texts.

    Raises:
        InputError: not YAML, nested too deep, or aliases that grow without bound.
    """
    import yaml

    return _loaded(text, path, getattr(yaml, "CSafeLoader", yaml.SafeLoader), only=False)


def parse_yaml(text: str, path: Path | None, loader: Any) -> Any:
    """Parse one YAML document with a loader of PyYAML that makes plain values alone; errors as `parse_plain_yaml`."""
    return _loaded(text, path, loader, only=True)


def _loaded(text: str, path: Path | None, loader: Any, *, only: bool) -> Any:
    import yaml

    try:
        _check_depth(text, path)
        documents = yaml.load_all(text, Loader=_bounded(loader))  # all loaders make plain values alone
        content = next(documents, None)
        if only and next(documents, None) is not None:
            raise InputError("holds more than one document", path=path)
        _expanded_size(content, path, {})
    except InputError as error:
        raise InputError(error.mistakes[0].message, path=path) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        raise InputError(f"is not YAML: {error.problem}", path=path, line=line, column=column) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"is not YAML: {error}", path=path) from error
    except RecursionError as error:
        raise InputError("is nested too deep", path=path) from error
    return content


@lru_cache(maxsize=8)
def _bounded(loader: Any) -> Any:
    """The loader with a bound on what merge keys (`<<`) bring together, which may grow ninefold a line."""
    if not hasattr(loader, "flatten_mapping"):
        return loader

    def flatten_mapping(self: Any, node: Any) -> None:
        loader.flatten_mapping(self, node)
        if len(node.value) > MOST_MERGED and len({id(value) for _, value in node.value}) < len(node.value):
            raise InputError("its merge keys bring too many values together")

    return type("BoundedLoader", (loader,), {"flatten_mapping": flatten_mapping})


def _check_depth(text: str, path: Path | None) -> None:
    """Refuse text that nests deeper than any file of a feedstock, since libyaml's loader ends the process for it.

    Brackets and marks are counted wherever they stand: a bound from above, and quick.
    """
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    deepest = max(deepest, max(map(len, re.findall(r"^[ \t?:-]+", text, re.MULTILINE)), default=0))
    if deepest > DEEPEST:
        raise InputError("is nested too deep", path=path)


def _expanded_size(node: Any, path: Path | None, sizes: dict[int, int]) -> int:
    """The number of nodes once every alias is followed; what an alias stands for is counted once, then known."""
    if not isinstance(node, list | dict):
        return 1
    known = sizes.get(id(node))
    if known == 0:
        raise InputError("an alias stands for a list or mapping that holds it", path=path)
    if known is not None:
        return known
    sizes[id(node)] = 0
    children = node if isinstance(node, list) else [part for pair in node.items() for part in pair]
    size = 1 + sum(_expanded_size(child, path, sizes) for child in children)
    if size > LARGEST_EXPANSION:
        raise InputError("its aliases stand for too many values", path=path)
    sizes[id(node)] = size
    return size


def read_plain_yaml(path: Path) -> Any:
    """The content of a YAML file in the base schema; errors as of `read_text` and `parse_plain_yaml`."""
    return parse_plain_yaml(read_text(path), path)


def read_values_yaml(path: Path) -> Any:
    """As `read_plain_yaml`, but whole numbers without quotes are `WholeNumber`: rattler-build tells them from texts."""
    return parse_yaml(read_text(path, LARGEST_SETTINGS), path, _values_loader())


@lru_cache(maxsize=1)
def _values_loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    def construct_scalar(self: Any, node: Any) -> str:
        text: str = base.construct_scalar(self, node)
        return WholeNumber(text) if not node.style and _WHOLE.fullmatch(text) else text

    return type("ValuesLoader", (base,), {"construct_scalar": construct_scalar})
