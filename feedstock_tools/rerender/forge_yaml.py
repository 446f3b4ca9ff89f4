"""conda-forge.yml as typed YAML, with the place of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants import read

__all__ = ["parse_settings"]

Keys = tuple[str, ...]
Places = dict[Keys, tuple[int | None, int | None]]
#: Settings are looked up two deep.
_DEPTH = 2


def parse_settings(text: str, path: Path) -> tuple[Mapping[str, Any], Places]:
    """The settings of the first document (conda-smithy leaves the rest alone), and the line and column of each.

    Raises:
        InputError: not YAML, not a mapping, tags of other things than plain data, or aliases that grow without bound.
    """
    import yaml

    settings = read.parse_settings(text, path)
    if settings is None:
        return {}, {}
    if not isinstance(settings, dict):
        raise InputError("is to be a mapping of settings", path=path)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    node = next(yaml.compose_all(text, Loader=loader), None)
    return {str(key): value for key, value in settings.items()}, dict(_places(node))


def _places(node: Any, keys: Keys = ()) -> Iterator[tuple[Keys, tuple[int | None, int | None]]]:
    import yaml

    if not isinstance(node, yaml.MappingNode) or len(keys) >= _DEPTH:
        return
    for key, value in node.value:
        mark = key.start_mark
        here = (*keys, str(key.value))
        yield here, (mark.line + 1, mark.column + 1)
        yield from _places(value, here)
