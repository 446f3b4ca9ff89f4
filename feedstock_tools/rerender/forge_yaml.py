"""conda-forge.yml as typed YAML, with the place of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.nodes import compose, pairs, place_of
from feedstock_tools.yaml_reading.values import parse_first

Keys = tuple[str, ...]
Places = dict[Keys, tuple[int | None, int | None]]
#: Settings are read down to two levels.
_DEPTH = 2


def parse_settings(text: str, path: Path) -> tuple[Mapping[str, Any], Places]:
    """The settings of the first document (conda-smithy ignores the rest), and the line and column of each.

    Raises:
        InputError: not YAML, not a mapping, tags for anything but plain data, or aliases that grow without limit.
    """
    settings = parse_first(text, path)
    if settings is None:
        return {}, {}
    if not isinstance(settings, dict):
        raise InputError("must be a mapping of settings", path=path)
    return {str(key): value for key, value in settings.items()}, dict(_places(compose(text, path, first=True)))


def _places(node: Any, keys: Keys = ()) -> Iterator[tuple[Keys, tuple[int | None, int | None]]]:
    for key, value in pairs(node) if len(keys) < _DEPTH else ():
        place = place_of(key)
        here = (*keys, str(key.value))
        yield here, (place.line, place.column)
        yield from _places(value, here)
