"""Bring what is generated up to date before a build: the recipe from the spec, the configurations from the recipe."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.folder import Feedstock, user_cache
from feedstock_tools.feedstock.layout import Artifacts

__all__ = ["recipe_to_build", "refresh"]

_TWIN = "recipe-v1"


def refresh(feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Regenerate and rerender what is stale.

    A feedstock without a spec, and one that follows conda-forge's pinning, keeps the configurations it has: its pinning
    is not at hand here, and `feedstock-tools rerender` is what changes them. That nothing is stale is remembered in
    the user's cache by the contents of everything that decides it.

    Args:
        machine: the environment of the machine, which says where the cache is.

    Raises:
        InputError: the spec, the recipe or the variant files cannot be used.
        WorkError: a file cannot be written.
    """
    if not feedstock.spec.is_file():
        return
    known = user_cache(machine, artifacts.root / ".cache") / "up-to-date"
    if (known / _digest(feedstock)).is_file() and recipe_to_build(feedstock, artifacts).is_file():
        return
    from feedstock_tools.generate import read_spec, render

    spec = read_spec(feedstock.folder)
    whole = _regenerate(feedstock, render(spec), say)
    if spec.pinning == "self-contained":
        _rerender(feedstock, say)
    if spec.format == "v0":
        _make_twin(feedstock, artifacts, render(spec, "v1"))
    if not whole:
        return
    with suppress(OSError):  # what cannot be remembered is looked at again the next time
        known.mkdir(parents=True, exist_ok=True)
        (known / _digest(feedstock)).touch()


def _digest(feedstock: Feedstock) -> str:
    """Changes with everything that is generated, that it is generated from, and this program and its data."""
    own = [PACKAGE, data_folder("templates"), data_folder("variants")]
    return digest_of_files([*feedstock.inputs, feedstock.folder / ".feedstock-tools", *own])


def recipe_to_build(feedstock: Feedstock, artifacts: Artifacts, engine: str | None = None) -> Path:
    """The `recipe.yaml` that is built: the feedstock's own, or the one made from the spec of one with a `meta.yaml`.

    Where conda-build is asked for, or the feedstock's own scripts, it is the feedstock's own in any case: there is no
    such file where it has a `meta.yaml`.
    """
    own = feedstock.recipe / "recipe.yaml"
    twin = artifacts.root / ".cache" / _TWIN / "recipe" / "recipe.yaml"
    has_meta = (feedstock.recipe / "meta.yaml").is_file()
    as_it_is = engine == "conda-build" or (engine == "container" and (feedstock.folder / ".scripts").is_dir())
    return twin if has_meta and not own.is_file() and feedstock.spec.is_file() and not as_it_is else own


def _regenerate(feedstock: Feedstock, texts: Mapping[PurePosixPath, str], say: Callable[[str], None]) -> bool:
    """Write what is stale; false where a file was left alone because a person has edited it."""
    from feedstock_tools.generate import apply, compare

    stale = [change for change in compare(feedstock.folder, texts) if change.kind != "same"]
    edited = [str(change.path) for change in stale if change.kind == "edited"]
    if edited:
        say(f"Not regenerated, since edited by hand: {', '.join(edited)}. Building what is there.")
    elif stale:
        apply(feedstock.folder, texts)
        say(f"Regenerated from feedstock.yaml: {', '.join(str(change.path) for change in stale)}")
    return not edited


def _rerender(feedstock: Feedstock, say: Callable[[str], None]) -> None:
    from feedstock_tools.rerender.rerendering import rerender

    stale = rerender(feedstock.folder).changes()
    if stale:
        stale.apply()
        say(f"Rerendered {len(stale.files)} files of .ci_support from the recipe")


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
        raise WorkError(f"cannot make the recipe to build: {error.strerror or error}", path=twin) from error
