"""Update generated files before a build: the recipe from the spec, the configurations from the recipe."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files, stamp_of_files
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.folder import Feedstock, user_cache
from feedstock_tools.feedstock.layout import Artifacts

__all__ = ["Refreshed", "recipe_to_build", "refresh"]

_TWIN = "recipe-v1"
_STAMP = "up-to-date"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The updated files.

    Attributes:
        generated: the files generated again from the spec, as paths in the feedstock.
        edited: stale files that a person has edited, left unchanged.
        rerendered: the number of written files in `.ci_support`.
    """

    generated: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    rerendered: int = 0


def refresh(feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str]) -> Refreshed:
    """Regenerate and rerender stale files.

    A feedstock without a spec, and one that follows conda-forge's pinning, keeps the configurations it has: its pinning
    is not available here, and `feedstock-tools rerender` changes them. That nothing is stale is cached twice:
    by names, sizes and times of the files in the artifacts folder, which a call with nothing to do reads, and by the
    contents of all inputs in the user's cache.

    Args:
        machine: the environment of the machine, which determines the cache folder.

    Raises:
        InputError: the spec, the recipe or the variant files are invalid.
        WorkError: a file cannot be written.
    """
    if not feedstock.spec.is_file():
        return Refreshed()
    has_recipe = recipe_to_build(feedstock, artifacts).is_file()
    if has_recipe and artifacts.recall(_STAMP) == stamp_of_files(_deciding(feedstock)):
        return Refreshed()
    known = user_cache(machine, artifacts.root / ".cache") / "up-to-date"
    done = Refreshed()
    if not has_recipe or not (known / digest_of_files(_deciding(feedstock))).is_file():
        done = _refreshed(feedstock, artifacts)
        if not done.edited:
            with suppress(OSError):  # without the cache it is checked again the next time
                known.mkdir(parents=True, exist_ok=True)
                (known / digest_of_files(_deciding(feedstock))).touch()
    artifacts.remember(_STAMP, stamp_of_files(_deciding(feedstock)))
    return done


def _refreshed(feedstock: Feedstock, artifacts: Artifacts) -> Refreshed:
    from feedstock_tools.generate import read_spec, render

    spec = read_spec(feedstock.folder)
    done = _regenerate(feedstock, render(spec))
    if spec.pinning == "self-contained":
        done = replace(done, rerendered=_rerender(feedstock))
    if spec.format == "v0":
        _make_twin(feedstock, artifacts, render(spec, "v1"))
    return done


def _deciding(feedstock: Feedstock) -> list[Path]:
    """All generated files, their inputs, and this program and its data."""
    own = [PACKAGE, data_folder("templates"), data_folder("variants")]
    return [*feedstock.inputs, feedstock.folder / ".feedstock-tools", *own]


def recipe_to_build(feedstock: Feedstock, artifacts: Artifacts, engine: str | None = None) -> Path:
    """The `recipe.yaml` to build: the feedstock's own, or, for a `meta.yaml`, one generated from the spec.

    With conda-build or the feedstock's own scripts it is always the feedstock's own: there is no
    such file if it has a `meta.yaml`.
    """
    own = feedstock.recipe / "recipe.yaml"
    twin = artifacts.root / ".cache" / _TWIN / "recipe" / "recipe.yaml"
    has_meta = (feedstock.recipe / "meta.yaml").is_file()
    as_it_is = engine == "conda-build" or (engine == "container" and (feedstock.folder / ".scripts").is_dir())
    return twin if has_meta and not own.is_file() and feedstock.spec.is_file() and not as_it_is else own


def _regenerate(feedstock: Feedstock, texts: Mapping[PurePosixPath, str]) -> Refreshed:
    """Write stale files, unless a person has edited one of them: then nothing."""
    from feedstock_tools.generate import apply, compare

    stale = [change for change in compare(feedstock.folder, texts) if change.kind != "same"]
    edited = tuple(str(change.path) for change in stale if change.kind == "edited")
    if edited:
        return Refreshed(edited=edited)
    if stale:
        apply(feedstock.folder, texts)
    return Refreshed(generated=tuple(str(change.path) for change in stale))


def _rerender(feedstock: Feedstock) -> int:
    from feedstock_tools.rerender.rerendering import rerender

    stale = rerender(feedstock.folder).changes()
    if stale:
        stale.apply()
    return len(stale.files)


def _make_twin(feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str]) -> None:
    """A folder that looks like the feedstock with a `recipe.yaml` instead of its `meta.yaml`, from the same spec."""
    twin = artifacts.root / ".cache" / _TWIN
    try:
        shutil.rmtree(twin, ignore_errors=True)
        twin.mkdir(parents=True)
        for entry in feedstock.folder.iterdir():
            if entry != feedstock.recipe and not entry.name.startswith(".") and entry != artifacts.root:
                (twin / entry.name).symlink_to(entry)
        shutil.copytree(feedstock.recipe, twin / "recipe", ignore=shutil.ignore_patterns("meta.yaml"))
        for path, text in texts.items():
            if path.parts[0] == "recipe":
                (twin / path).parent.mkdir(parents=True, exist_ok=True)
                (twin / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise WorkError(f"cannot write the recipe to build: {error.strerror or error}", path=twin) from error
