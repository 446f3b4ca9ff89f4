"""Whether the generated files of a feedstock match their inputs: the recipe the spec, the configurations the recipe.
Here is also the recipe that a build reads.

A build updates the files first (`refresh`); commands that only read report what is outdated (`outdated`).
`updated_copy` is a feedstock as a build would leave it.

A build reads the feedstock's own `recipe.yaml`, or for a `meta.yaml` that of the feedstock's twin: a folder in the
artifacts folder's cache that looks like the feedstock, with a `recipe.yaml` in place of the `meta.yaml`: generated from
the same spec, or without a spec converted from the `meta.yaml`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files, digest_of_values, stamp_of_files
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import Feedstock, user_cache
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import GENERATED

if TYPE_CHECKING:
    from feedstock_tools.files.changes import Changes
    from feedstock_tools.generate.spec.model import Spec


#: The name of what is kept of comparisons: in the cache of the artifacts, the result of the last one; in the user's
#: cache, a folder with an empty file for each digest of inputs that need no update.
COMPARED = "up-to-date"
#: This program, and its data.
_OWN = (PACKAGE, data_folder("templates"), data_folder("variants"))
#: What is read or written in the copy as a file of its own; everything else in it is a link to the feedstock.
_COPIED = frozenset({"feedstock.yaml", "conda-forge.yml", "recipe", ".ci_support", ".feedstock-tools"})
#: The only other hidden folder that a build reads; a rerender writes into some of the rest.
_SCRIPTS = ".scripts"


@dataclass(frozen=True, slots=True)
class Updates:
    """Generated files that were updated, or that a build would update.

    Attributes:
        generated: those generated from the spec, as paths in the feedstock.
        edited: outdated files that a person has edited, which stay unchanged.
        rerendered: the number of files that a rerender writes; unknown, and 0, as long as the recipe is outdated.
    """

    generated: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    rerendered: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no file is outdated but those that a person has edited."""
        return not self.generated and not self.rerendered


def refresh(feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str]) -> Updates:
    """Regenerate and rerender outdated files.

    A feedstock without a spec, and one that follows conda-forge's pinning, keeps the configurations it has: its pinning
    is not available here, and `feedstock-tools rerender` changes them. That nothing is outdated is cached twice:
    by names, sizes and times of the files in the artifacts folder, which a call with nothing to do reads, and by the
    contents of all inputs in the user's cache.

    Args:
        machine: the environment of the machine, which determines the cache folder.
    """
    if not feedstock.spec.is_file():
        return Updates()
    remembered = _remembered(feedstock, artifacts, machine)
    if remembered is not None and remembered.is_empty:
        return remembered
    spec, licenses = _buildable_spec(feedstock)
    done = update(feedstock, spec)
    _update_twin(feedstock, artifacts, spec)
    _remember(feedstock, artifacts, machine, Updates(edited=done.edited), licenses)
    return done


def outdated(feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str]) -> Updates:
    """The files that `refresh` would update. Writes nothing into the feedstock, only caches."""
    if not feedstock.spec.is_file():
        return Updates()
    remembered = _remembered(feedstock, artifacts, machine)
    if remembered is not None:
        return remembered
    spec, licenses = _buildable_spec(feedstock)
    pending = _pending(feedstock, spec)
    if pending.is_empty or not recipe_to_build(feedstock, artifacts).is_file():
        _update_twin(feedstock, artifacts, spec)  # else it stays as old as the meta.yaml
    _remember(feedstock, artifacts, machine, pending, licenses)
    return pending


def update(feedstock: Feedstock, spec: Spec) -> Updates:
    """Regenerate and rerender outdated files. Unless a person has edited one, then only the configurations are written.

    Args:
        spec: of the feedstock.
    """
    from feedstock_tools.generate.generating import apply

    texts = _texts(spec)
    done = _regenerated(feedstock, texts)
    if done.generated:
        apply(feedstock.folder, texts)
    if spec.pinning != "self-contained":
        return done
    changes = _rerender(feedstock)
    if changes:
        changes.apply()
    return replace(done, rerendered=len(changes.files))


@contextmanager
def updated_copy(feedstock: Feedstock) -> Iterator[tuple[Feedstock, Path]]:
    """A temporary copy of a feedstock after `refresh`, and its recipe to build. The feedstock stays unchanged.

    Errors inside the context name the files of the feedstock, not those of the copy.

    Args:
        feedstock: one with a spec.

    Raises:
        InputError: the spec, the recipe or the variant files are invalid.
        WorkError: the copy cannot be written.
    """
    with temporary_folder() as temporary:
        # As deep as the feedstock, so that paths of sources that lead out of it stay within the temporary folder.
        copy = Feedstock(temporary.resolve().joinpath(*feedstock.folder.absolute().parts[1:]))
        try:
            _mirror(feedstock.folder, copy.folder)
            _link_sources(feedstock, copy, temporary.resolve())
            yield copy, _updated_recipe(copy)
        except InputError as error:
            raise InputError.of(
                [
                    replace(mistake, path=_original(mistake.path, copy.folder, feedstock.folder))
                    for mistake in error.mistakes
                ]
            ) from error


def behind_spec(folder: Path) -> str | None:
    """Why the recipe of a feedstock is not what its spec says, in a sentence with what to do; None if it is.

    A spec that was not touched since the recipe was generated is not read. Recipes that a person has edited are not
    compared either: `generate` refuses to write those.
    """
    feedstock = Feedstock(folder)
    if not feedstock.spec.is_file():
        return None
    record = folder / GENERATED
    if not record.is_file() or feedstock.spec.stat().st_mtime_ns <= record.stat().st_mtime_ns:
        return None
    hint = f"run: feedstock-tools generate {shlex.quote(str(folder))}"
    try:
        updates = _regenerated(feedstock, _texts(_read_spec(feedstock)))
    except InputError as error:
        first = replace(error.mistakes[0], hint=None)
        return f"the recipe was generated from an earlier feedstock.yaml, and today's has mistakes ({first}); {hint}"
    if updates.generated:
        return f"{updates.generated[0]} is not what feedstock.yaml says now; {hint}"
    return None


def _pending(feedstock: Feedstock, spec: Spec) -> Updates:
    """What `update` would do; the configurations are compared only with a recipe that stays as it is."""
    pending = _regenerated(feedstock, _texts(spec))
    if pending.generated or spec.pinning != "self-contained":
        return pending
    return replace(pending, rerendered=len(_rerender(feedstock).files))


def _regenerated(feedstock: Feedstock, texts: Mapping[PurePosixPath, str]) -> Updates:
    """The outdated files; none of them is generated again if a person has edited one."""
    from feedstock_tools.generate.generating import compare

    stale = [change for change in compare(feedstock.folder, texts) if change.kind != "same"]
    edited = tuple(str(change.path) for change in stale if change.kind == "edited")
    return Updates(edited=edited) if edited else Updates(generated=tuple(str(change.path) for change in stale))


def _read_spec(feedstock: Feedstock) -> Spec:
    from feedstock_tools.generate.spec.reading import read_spec

    return read_spec(feedstock.folder)


def _buildable_spec(feedstock: Feedstock) -> tuple[Spec, list[str]]:
    """The spec, unless each of its builds would fail at its end, and the places of its license files."""
    from feedstock_tools.generate.spec.reading import require_licenses

    spec = _read_spec(feedstock)
    licenses = require_licenses(spec, feedstock.spec)
    return spec, [os.path.relpath(path, feedstock.folder) for path in licenses]


def _texts(spec: Spec, recipe_format: str | None = None) -> Mapping[PurePosixPath, str]:
    from feedstock_tools.generate.texts.rendering import render

    return render(spec, recipe_format)


def _rerender(feedstock: Feedstock) -> Changes:
    from feedstock_tools.rerender.rerendering import rerender

    return rerender(feedstock.folder).changes()


def _update_twin(feedstock: Feedstock, artifacts: Artifacts, spec: Spec) -> None:
    if not _is_twin(recipe_to_build(feedstock, artifacts), artifacts):
        return
    digest = _digest(feedstock)
    if digest != _twin_inputs(artifacts):
        _make_twin(feedstock, artifacts, _texts(spec, "v1"), digest)


def _mirror(original: Path, copy: Path) -> None:
    try:
        copy.mkdir(parents=True)
        for entry in original.iterdir():
            if entry.name in _COPIED:
                own = copy / entry.name
                shutil.copytree(entry, own, symlinks=True) if entry.is_dir() else shutil.copy2(entry, own)
            elif entry.name == _SCRIPTS or not entry.name.startswith("."):
                (copy / entry.name).symlink_to(entry)
    except OSError as error:
        raise WorkError(f"cannot copy the feedstock: {error.strerror or error}", path=copy) from error


def _link_sources(feedstock: Feedstock, copy: Feedstock, within: Path) -> None:
    """Let paths of sources that lead out of a copy lead to those of the feedstock; only there anything is written."""
    from feedstock_tools.generate.spec.reading import local_path

    spec = _read_spec(copy)
    for source in (source for source in spec.sources if source.path):
        place = local_path(source, spec, copy.recipe)
        own = place.is_relative_to(copy.folder) or not place.parent.resolve().is_relative_to(within)
        if not own and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(local_path(source, spec, feedstock.recipe))


def _updated_recipe(copy: Feedstock) -> Path:
    spec = _read_spec(copy)
    update(copy, spec)
    artifacts = Artifacts(copy.artifacts)
    recipe = recipe_to_build(copy, artifacts)
    if _is_twin(recipe, artifacts):
        _make_twin(copy, artifacts, _texts(spec, "v1"), inputs="")
    return recipe


def _original(path: Path | None, copy: Path, original: Path) -> Path | None:
    return original / path.relative_to(copy) if path is not None and path.is_relative_to(copy) else path


def _digest(feedstock: Feedstock) -> str:
    """Of all generated files, their inputs, and this program and its data."""
    return digest_of_values([digest_of_files(_files(feedstock)), _own_digest()])


def _stamp(feedstock: Feedstock) -> str:
    return f"{stamp_of_files(_files(feedstock))} {own_stamp()}"


def _files(feedstock: Feedstock) -> list[Path]:
    return [*feedstock.inputs, feedstock.folder / ".feedstock-tools"]


@cache
def _own_digest() -> str:
    """Of the program that this process runs, and its data: a later version of them is another's."""
    return digest_of_files(_OWN)


@cache
def own_stamp() -> str:
    """A stamp of the same."""
    return stamp_of_files(_OWN)


def _remembered(feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str]) -> Updates | None:
    recipe = recipe_to_build(feedstock, artifacts)
    if not recipe.is_file():
        return None
    cached = artifacts.recall(COMPARED)
    with suppress(KeyError, TypeError):
        if cached["stamp"] == _stamp(feedstock) and _has(feedstock, cached["licenses"]):
            return Updates(tuple(cached["generated"]), tuple(cached["edited"]), int(cached["rerendered"]))
    digest = _digest(feedstock)
    is_current = not _is_twin(recipe, artifacts) or _twin_inputs(artifacts) == digest
    licenses: list[str] | None = None
    with suppress(OSError, ValueError):
        licenses = json.loads((_known_digests(artifacts, machine) / digest).read_text(encoding="utf-8"))
    if not is_current or licenses is None or not _has(feedstock, licenses):
        return None
    _remember_stamp(feedstock, artifacts, Updates(), licenses)
    return Updates()


def _has(feedstock: Feedstock, licenses: Sequence[str]) -> bool:
    """Whether the license files are still there; a source may be no input of what is compared."""
    return all((feedstock.folder / place).is_file() for place in licenses)


def _remember(
    feedstock: Feedstock, artifacts: Artifacts, machine: Mapping[str, str], result: Updates, licenses: Sequence[str]
) -> None:
    _remember_stamp(feedstock, artifacts, result, licenses)
    if result == Updates():
        digests = _known_digests(artifacts, machine)
        with suppress(OSError):  # without the cache it is checked again the next time
            digests.mkdir(parents=True, exist_ok=True)
            (digests / _digest(feedstock)).write_text(json.dumps(licenses), encoding="utf-8")


def _remember_stamp(feedstock: Feedstock, artifacts: Artifacts, result: Updates, licenses: Sequence[str]) -> None:
    artifacts.remember(COMPARED, {"stamp": _stamp(feedstock), "licenses": licenses, **asdict(result)})


def _known_digests(artifacts: Artifacts, machine: Mapping[str, str]) -> Path:
    return user_cache(machine, artifacts.cache) / COMPARED


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
    return _recipe_of_twin(artifacts) if needs_twin else own


def has_meta_alone(feedstock: Feedstock) -> bool:
    return (feedstock.recipe / "meta.yaml").is_file() and not (feedstock.recipe / "recipe.yaml").is_file()


def _recipe_of_twin(artifacts: Artifacts) -> Path:
    return _twin(artifacts) / "recipe" / "recipe.yaml"


def _is_twin(recipe: Path, artifacts: Artifacts) -> bool:
    return recipe.is_relative_to(_twin(artifacts))


def _twin_inputs(artifacts: Artifacts) -> str | None:
    """The digest of the files that the twin was made from; None without a twin."""
    with suppress(OSError, UnicodeDecodeError):
        return (_twin(artifacts) / _INPUTS).read_text(encoding="utf-8")
    return None


def _make_twin(feedstock: Feedstock, artifacts: Artifacts, texts: Mapping[PurePosixPath, str], inputs: str) -> None:
    """Make the twin of a feedstock, or replace it.

    Args:
        texts: the files of the v1 form, by their path in the feedstock.
        inputs: a value that changes with the files that it is made from.
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
    """
    stamp = stamp_of_files([*feedstock.inputs, *(PACKAGE / room for room in _ROOMS)])
    recipe = _recipe_of_twin(artifacts)
    recalled = artifacts.recall(_CACHE)
    with suppress(KeyError, TypeError):
        if recalled["stamp"] == stamp and not recalled["recipe"]:
            return Conversion(None, tuple(recalled["lost"]))
        if recalled["stamp"] == stamp and recipe.is_file() and _twin_inputs(artifacts) == stamp:
            return Conversion(recipe, tuple(recalled["lost"]))
    try:
        text, lost = run_bounded(partial(_converted_text, feedstock.folder), bounds)
    except InputError as error:
        made = Conversion(None, (" ".join(str(error).split()),))
    else:
        try:
            _make_twin(feedstock, artifacts, {PurePosixPath("recipe/recipe.yaml"): text}, stamp)
        except WorkError as error:  # commands that only read, such as --list, also work in a read-only folder
            return Conversion(None, (" ".join(str(error).split()),))
        made = Conversion(recipe, lost)
    artifacts.remember(_CACHE, {"stamp": stamp, "recipe": made.recipe is not None, "lost": made.lost})
    return made


def _converted_text(folder: Path) -> tuple[str, tuple[str, ...]]:
    from feedstock_tools.recipe.v1_engine import parse_v1
    from feedstock_tools.recipe.written.document import read_document
    from feedstock_tools.rerender.configuration import read_configurations
    from feedstock_tools.to_v1 import convert_recipe

    meta = read_document(folder / "recipe" / "meta.yaml", within=folder)
    made = convert_recipe(meta, read_configurations(folder))
    parse_v1(made.text, meta.path.with_name("recipe.yaml"))
    return made.text, tuple(f"meta.yaml:{problem.line}: {problem.reason}" for problem in made.problems)
