"""The door to py-rattler-build's rendering: parsing, variants as it wants them, and its errors as ours."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants.model import WholeNumber
from feedstock_tools.yaml_reading.nodes import Schema, compose, members

if TYPE_CHECKING:
    from rattler_build import Stage0Recipe, VariantConfig

__all__ = ["engine_error", "engine_variants", "parsed_recipe", "skip_probe", "text_of"]

_PLACE = re.compile(r"(?<![\d.:])(\d{1,6}):(\d{1,6}):|line (\d{1,6}),? column (\d{1,6})")
_LONGEST_MESSAGE = 1_000
_PROBE = "outputs:\n- package: {name: probe, version: '0'}\n  build: {skip: []}\n"


def parsed_recipe(text: str, path: Path, written: Path | None = None) -> Stage0Recipe:
    """The recipe as the engine parses it; from `written` where its text is not that of `path`.

    Raises:
        InputError: the engine refuses it.
    """
    from rattler_build import Stage0Recipe

    try:
        return Stage0Recipe.from_file(written or path)
    except Exception as error:  # the engine has no common base for its errors
        raise engine_error(error, path, text) from error


def skip_probe(text: str, path: Path) -> Stage0Recipe | None:
    """For a recipe without outputs but with `skip`: a recipe of one output that is skipped where that one is.

    The engine's `render` tells every row of a recipe without outputs, skipped or not; of one with outputs only those
    that are built.
    """
    import yaml

    top = members(compose(text, path, Schema.TYPES))
    skip = members(top.get("build")).get("skip")
    if "outputs" in top or skip is None:
        return None
    probe: Any = compose(_PROBE, schema=Schema.TYPES)
    members(probe.value[0][1].value[0])["build"].value = [(yaml.ScalarNode("tag:yaml.org,2002:str", "skip"), skip)]
    if "context" in top:
        probe.value.insert(0, (yaml.ScalarNode("tag:yaml.org,2002:str", "context"), top["context"]))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "recipe.yaml"
        written.write_text(yaml.serialize(probe), encoding="utf-8")
        return parsed_recipe(text, path, written)


def engine_variants(values: Mapping[str, Sequence[str]], zip_keys: Sequence[Sequence[str]]) -> VariantConfig:
    """Variants for the engine; the texts `true` and `false` become booleans, as conda-smithy hands them over."""
    from rattler_build import VariantConfig

    typed = {key: [_typed(value) for value in items] for key, items in values.items()}
    return VariantConfig(typed, [list(group) for group in zip_keys])


def _typed(value: str) -> str | bool | int:
    if isinstance(value, WholeNumber):
        return int(value)
    return value == "true" if value in ("true", "false") else value


def text_of(value: Any) -> str:
    """A value that the engine gives back, as variants have it: the inverse of what `engine_variants` hands over."""
    if isinstance(value, bool):
        return str(value).lower()
    return WholeNumber(value) if isinstance(value, int) else str(value)


def engine_error(error: BaseException, path: Path, text: str) -> InputError:
    """The engine's error as one of ours, with the place in the recipe if the message names it."""
    message = " ".join(str(error).split())
    place = _PLACE.search(message)
    line, column = (int(number) for number in place.groups() if number) if place else (None, None)
    if line is not None and line > text.count("\n") + 1:
        line = column = None
    short = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
    return InputError(f"rattler-build refuses the recipe: {short}", path=path, line=line, column=column)
