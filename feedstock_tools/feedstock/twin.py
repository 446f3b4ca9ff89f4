"""The recipe that a build reads: the feedstock's own `recipe.yaml`, or for a `meta.yaml` that of the feedstock's twin.

The twin is a folder in the artifacts folder's cache that looks like the feedstock, with a `recipe.yaml` in place of the
`meta.yaml`: generated from the same spec, or without a spec converted from the `meta.yaml`.
"""

from __future__ import annotations

import json
import shutil
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
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import temporary_folder

_TWIN = "recipe-v1"
_CACHE = "converted"
#: The rooms of this package whose change makes an earlier conversion obsolete.
_ROOMS = ("feedstock", "to_v1", "edit", "recipe", "conditions")
#: The file in a twin with the digest of the files that it was made from.
_INPUTS = ".made-from"


def recipe_to_build(feedstock: Feedstock, artifacts: Artifacts, engine: str | None = None) -> Path:
    """The `recipe.yaml` to build: the feedstock's own, or, for a `meta.yaml`, one generated from the spec.

    With conda-build or the feedstock's own scripts it is always the feedstock's own: there is no
    such file if it has a `meta.yaml`.
    """
    own = feedstock.recipe / "recipe.yaml"
    as_it_is = engine == "conda-build" or (engine == "container" and (feedstock.folder / ".scripts").is_dir())
    needs_twin = has_meta_alone(feedstock) and feedstock.spec.is_file() and not as_it_is
    return recipe_of_twin(artifacts) if needs_twin else own


def has_meta_alone(feedstock: Feedstock) -> bool:
    """Whether the recipe is a `meta.yaml`."""
    return (feedstock.recipe / "meta.yaml").is_file() and not (feedstock.recipe / "recipe.yaml").is_file()


def recipe_of_twin(artifacts: Artifacts) -> Path:
    """The recipe of the twin, whether there is one or not."""
    return _twin(artifacts) / "recipe" / "recipe.yaml"


def is_twin(recipe: Path, artifacts: Artifacts) -> bool:
    """Whether a recipe to build is that of the twin."""
    return recipe.is_relative_to(_twin(artifacts))


def twin_inputs(artifacts: Artifacts) -> str | None:
    """The digest of the files that the twin was made from; None without a twin."""
    with suppress(OSError, UnicodeDecodeError):
        return (_twin(artifacts) / _INPUTS).read_text(encoding="utf-8")
    return None


def make_twin(feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str], inputs: str) -> None:
    """Make the twin of a feedstock, or replace it.

    Args:
        texts: the files of the v1 form, by their path in the feedstock.
        inputs: a value that changes with the files that it is made from.

    Raises:
        WorkError: it cannot be written.
    """
    twin = _twin(artifacts)
    try:
        twin.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(twin.parent) as new:
            _fill(new, feedstock, artifacts, texts)
            (new / _INPUTS).write_text(inputs, encoding="utf-8")
            shutil.rmtree(twin, ignore_errors=True)
            new.rename(twin)
    except OSError as error:
        raise WorkError(f"cannot write the recipe to build: {error.strerror or error}", path=twin) from error


def _fill(new: Path, feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str]) -> None:
    """Links to everything in the feedstock but the recipe, which is copied with the generated files in it."""
    for entry in feedstock.folder.iterdir():
        if entry != feedstock.recipe and not entry.name.startswith(".") and entry != artifacts.root:
            (new / entry.name).symlink_to(entry)
    shutil.copytree(feedstock.recipe, new / "recipe", ignore=shutil.ignore_patterns("meta.yaml"))
    for path, text in texts.items():
        if path.parts[0] == "recipe":
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_text(text, encoding="utf-8")


def _twin(artifacts: Artifacts) -> Path:
    return artifacts.cache / _TWIN


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
    from feedstock_tools.rerender.configuration import read_configurations
    from feedstock_tools.to_v1 import convert_recipe

    meta = read_document(folder / "recipe" / "meta.yaml", within=folder)
    made = convert_recipe(meta, read_configurations(folder))
    parse_v1(made.text, meta.path.with_name("recipe.yaml"))
    return made.text, _shown(made.problems)


def _shown(problems: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"meta.yaml:{problem.line}: {problem.reason}" for problem in problems)
