"""A feedstock with a `meta.yaml` and no spec, converted for an engine that builds a `recipe.yaml`.

The feedstock stays as it is: the converted recipe is in its twin, in the artifacts folder's cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.data import PACKAGE
from feedstock_tools.digests import stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.twin import make_twin, recipe_of_twin, twin_inputs

_CACHE = "converted"
#: The rooms of this package whose change makes an earlier conversion obsolete.
_ROOMS = ("feedstock", "to_v1", "edit", "recipe")


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of converting a `meta.yaml`.

    Attributes:
        recipe: the `recipe.yaml` in the twin; None if it cannot be converted.
        lost: what has no equivalent in a `recipe.yaml`, with its line; or why nothing could be converted.
    """

    recipe: Path | None
    lost: tuple[str, ...] = ()


def converted(feedstock: Feedstock, artifacts: Artifacts, bounds: Bounds | None) -> Conversion:
    """Convert the `meta.yaml` of a feedstock into its twin, unless the twin is up to date.

    Args:
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        WorkError: the artifacts folder cannot be written.
    """
    stamp = stamp_of_files([*feedstock.inputs, *(PACKAGE / room for room in _ROOMS)])
    recipe = recipe_of_twin(artifacts)
    recalled = artifacts.recall(_CACHE)
    with suppress(KeyError, TypeError):
        if recalled["stamp"] == stamp and (recipe.is_file() if recalled["recipe"] else True):
            is_current = twin_inputs(artifacts) == stamp or not recalled["recipe"]
            if is_current:
                return Conversion(recipe if recalled["recipe"] else None, tuple(recalled["lost"]))
    made = _made(feedstock, artifacts, stamp, bounds)
    content: Mapping[str, Any] = {"stamp": stamp, "recipe": made.recipe is not None, "lost": list(made.lost)}
    artifacts.remember(_CACHE, json.loads(json.dumps(content)))
    return made


def _made(feedstock: Feedstock, artifacts: Artifacts, stamp: str, bounds: Bounds | None) -> Conversion:
    try:
        text, lost = run_bounded(partial(_converted_text, feedstock.folder), bounds)
    except InputError as error:
        return Conversion(None, (" ".join(str(error).split()),))
    make_twin(feedstock, artifacts, {PurePosixPath("recipe/recipe.yaml"): text}, stamp)
    return Conversion(recipe_of_twin(artifacts), lost)


def _converted_text(folder: Path) -> tuple[str, tuple[str, ...]]:
    from feedstock_tools.recipe.v1_engine import parse_v1
    from feedstock_tools.recipe.written.document import read_document
    from feedstock_tools.rerender.configurations.configuration import read_configurations
    from feedstock_tools.to_v1 import convert_recipe

    meta = read_document(folder / "recipe" / "meta.yaml", within=folder)
    made = convert_recipe(meta, read_configurations(folder))
    parse_v1(made.text, meta.path.with_name("recipe.yaml"))
    return made.text, _shown(made.problems)


def _shown(problems: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"meta.yaml:{problem.line}: {problem.reason}" for problem in problems)
