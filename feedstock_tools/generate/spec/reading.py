"""From a file to a `Spec`, or to all its mistakes: where, what was expected, and the nearest valid word.

Local sources, and the time stamps of migrations that are only named, are needed when recipes are generated and not
when a spec is read: a copy of a feedstock on another machine need not have its sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.generate.spec.checks import check_files, cross_check, files_of
from feedstock_tools.generate.spec.content import Finding
from feedstock_tools.generate.spec.items import Migration
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.reading import CI_SUPPORT, LARGEST_SCRIPT, SPEC_NAME, is_file, read_text
from feedstock_tools.wording import nearest
from feedstock_tools.yaml_reading.checking import mistakes_of
from feedstock_tools.yaml_reading.nodes import Location, parse_document

_LARGEST_SPEC = 1024 * 1024
_NO_SPEC = (
    "This is the spec from which the recipe is generated: name the folder with it; `init` writes one for a project."
)


def read_spec(path: Path) -> Spec:
    """Read a spec: the file itself, or the folder of a feedstock that has one.

    Migrations without a time stamp have that of the feedstock's stubs, if all of those are there.

    Raises:
        InputError: it cannot be read or has mistakes; all of them, each with line and column.
    """
    spec = read_spec_as_written(path)
    folder = path if path.is_dir() else path.parent
    has_stubs = all(is_file(folder / STUBS / f"{name}.yaml") for name in spec.migrations)
    return with_time_stamps(spec, folder, None, folder / SPEC_NAME) if has_stubs else spec


def read_spec_as_written(path: Path) -> Spec:
    """Like `read_spec`, without looking at the feedstock's stubs of migrations."""
    file = path / SPEC_NAME if path.is_dir() else path
    if not file.exists():
        hint = nearest(path.name, _folders_with_specs(path.parent), _NO_SPEC)
        raise InputError("there is no such file", path=file, hint=hint)
    return spec_from_text(read_text(file, _LARGEST_SPEC, within=file.parent), file, file.parent / "recipe")


def _folders_with_specs(folder: Path) -> list[str]:
    return [spec.parent.name for spec in folder.glob(f"*/{SPEC_NAME}")]


def spec_from_text(text: str, path: Path | None = None, recipe: Path | None = None) -> Spec:
    """Like `read_spec`, for a string.

    Args:
        path: named in the mistakes.
        recipe: the folder that must contain the scripts, patches and tests; not checked if None.
    """
    document = parse_document(text, path)
    mistakes = list(document.mistakes)
    if not isinstance(document.content, dict):
        raise InputError("a spec must be a mapping with keys such as name, version and outputs", path=path, line=1)
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(document.content)
    except ValidationError as error:
        mistakes += mistakes_of(document, error, Spec, "a spec")
    findings = [*cross_check(document.content), *(check_files(document.content, recipe) if recipe else ())]
    mistakes += [document.mistake(finding.location, finding.message, finding.hint) for finding in findings]
    if mistakes or spec is None:
        unique = dict.fromkeys(mistakes)
        raise InputError.of(sorted(unique, key=lambda mistake: (mistake.line or 0, mistake.column or 0)))
    return _with_script(_with_patches(spec, recipe), recipe) if recipe else spec


def _with_script(spec: Spec, recipe: Path) -> Spec:
    """The spec with the text of the script that it edits."""
    script = spec.cuda.script if spec.cuda else None
    if spec.cuda is None or script is None or script.edits is None:
        return spec
    known = script.with_text(read_text(recipe / script.edits, LARGEST_SCRIPT, within=recipe))
    return spec.model_copy(update={"cuda": spec.cuda.model_copy(update={"script": known})})


def _with_patches(spec: Spec, recipe: Path) -> Spec:
    """The spec with the patches that its patterns stand for."""
    if not any("*" in patch.file for source in spec.sources for patch in source.patches):
        return spec
    sources = []
    for source in spec.sources:
        named = [
            patch.model_copy(update={"file": file}) for patch in source.patches for file in files_of(recipe, patch.file)
        ]
        sources.append(source.model_copy(update={"patches": tuple(named)}))
    return spec.model_copy(update={"sources": tuple(sources)})


#: Endings of archives, which a release may make after the recipe.
ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar", ".zip", ".7z", ".whl", ".conda")
_MOST_NAMES = 6


def require_local_sources(spec: Spec, file: Path) -> None:
    """Check the sources on disk of a spec.

    Args:
        file: the spec's, `feedstock.yaml`; its sources are relative to the folder `recipe` beside it.

    Raises:
        InputError: a folder of sources, or one that a template builds, is missing, is a file, or leaves the sources.
    """
    _refuse(_findings(spec, file.parent / "recipe"), file)


def require_licenses(spec: Spec, file: Path) -> list[Path]:
    """Check that local sources have the license files of a spec, which builders look for at the end of a build.

    Args:
        file: as for `require_local_sources`.

    Returns:
        Those that they have.

    Raises:
        InputError: one is missing, and no script names it, which might write it.
    """
    recipe = file.parent / "recipe"
    folders = [local_path(source, spec, recipe) for source in spec.sources if source.path]
    if len(folders) == len(spec.sources) and all(path.is_dir() for path in folders):
        hint = f"Put the text of the license there, or into {recipe}."
        _refuse(_missing_licenses(spec, [recipe, *folders], hint), file)
    names = [*spec.about.license_file, *(name for output in spec.outputs for name in output.about.license_file)]
    return [path for name in names for folder in (recipe, *folders) if (path := folder / name).is_file()]


def _refuse(findings: Iterable[Finding], file: Path) -> None:
    found = list(findings)
    if not found:
        return
    document = parse_document(read_text(file, within=file.parent), file)
    raise InputError.of([document.mistake(finding.location, finding.message, finding.hint) for finding in found])


def _findings(spec: Spec, recipe: Path) -> Iterator[Finding]:
    local = {at: local_path(source, spec, recipe) for at, source in enumerate(spec.sources) if source.path}
    for at, path in local.items():
        if not path.exists() and not path.name.endswith(ARCHIVES):
            hint = f"Paths are relative to the folder recipe: {path} does not exist."
            yield Finding(("sources", at, "path"), f"there is no folder {spec.sources[at].path}", hint)
    if len(local) < len(spec.sources) or not all(path.is_dir() for path in local.values()):
        return  # what the others hold is known only after fetching them
    yield from _missing_licenses(spec, [recipe, *local.values()], None)  # without one it has yet to choose a license
    for location, script in _templates(spec):
        problem = _problem([(spec.sources[at], path) for at, path in local.items()], PurePosixPath(script.folder))
        if problem is not None:
            yield Finding(location, *problem)


def _missing_licenses(spec: Spec, folders: list[Path], otherwise: str | None) -> Iterator[Finding]:
    """The license files that none of the folders has and no script names, which might write one.

    Args:
        otherwise: the hint where no file has a similar name; None to pass over these.
    """
    owners: list[tuple[Location, tuple[str, ...]]] = [(("about",), spec.about.license_file)]
    owners += [(("outputs", at, "about"), output.about.license_file) for at, output in enumerate(spec.outputs)]
    known = sorted(path.name for folder in folders if folder.is_dir() for path in folder.iterdir())
    files = [path for path in folders[0].glob("*.*") if path.suffix in (".sh", ".bat") and is_file(path)]
    named = spec.model_dump_json() + "\n".join(read_text(path, within=folders[0]) for path in files)
    for location, names in owners:
        for name in names:
            if Path(name).name in known or any((folder / name).exists() for folder in folders):
                continue
            if named.count(name) > sum(names.count(name) for _, names in owners):
                continue
            if hint := nearest(name, known, otherwise, cutoff=0.8):
                yield Finding((*location, "license_file"), f"the sources have no file {name}", hint)


def local_path(source: Source, spec: Spec, recipe: Path) -> Path:
    """The folder or archive of a local source, also before the first recipe is written."""
    return Path(os.path.normpath(recipe.resolve() / (source.path or "").replace("{version}", spec.version)))


def _templates(spec: Spec) -> Iterator[tuple[Location, Script]]:
    """The scripts that build a folder of the sources, with the places of these folders in the spec."""
    owners: list[tuple[Location, Script | None]] = [(("build",), spec.build.script)]
    owners += [(("outputs", at), output.script) for at, output in enumerate(spec.outputs)]
    for location, script in owners:
        if script is not None and script.template is not None and script.folder != ".":
            yield (*location, "script", "folder"), script


def _problem(sources: list[tuple[Source, Path]], folder: PurePosixPath) -> tuple[str, str] | None:
    """What is wrong with a folder of the work folder, with a hint; None if a source has it."""
    reasons = []
    for source, root in sources:
        unpacked = PurePosixPath(source.folder or ".")
        if unpacked.is_relative_to(folder):
            return None
        if not folder.is_relative_to(unpacked):
            continue
        path = root / folder.relative_to(unpacked)
        if not path.is_dir():
            reasons.append(_missing(path, root, folder, unpacked))
        elif not path.resolve().is_relative_to(root.resolve()):
            link = f"{path} is a link to {path.resolve()}."
            reasons.append((f"'{folder}' leaves the source {source.path}", link))
        else:
            return None
    return reasons[0] if reasons else (f"no source has a folder '{folder}'", "Name a folder below that of a source.")


def _missing(path: Path, root: Path, folder: PurePosixPath, unpacked: PurePosixPath) -> tuple[str, str]:
    if path.is_file():
        return f"'{folder}' is a file, not a folder of the sources", "Name the folder with the project."
    names = sorted(str(unpacked / each.name) for each in root.iterdir() if each.is_dir() and each.name[0] != ".")
    listed = f"It has {', '.join(names[:_MOST_NAMES])}." if names else "It has no folders."
    return f"there is no folder '{folder}' in {root}", nearest(str(folder), names, listed, cutoff=0.6)


#: Where a feedstock holds the migrations that it takes part in.
STUBS = Path(CI_SUPPORT, "migrations")
_TIMESTAMP = re.compile(r"^migrator_ts:\s*([0-9.]+)", re.MULTILINE)
_NUMBER = re.compile(r"^\s+migration_number:\s*(\d+)", re.MULTILINE)


def with_time_stamps(spec: Spec, feedstock: Path, migrations: Path | None, place: Path | None = None) -> Spec:
    """The spec with the time stamps of all its migrations; of those of which the feedstock has a whole copy, with that.

    Args:
        feedstock: its folder; the stubs in it are asked where there is no pinning.
        migrations: the folder of the pinning's migrations, if there is a pinning.
        place: the file of the spec, for messages.

    Raises:
        InputError: the pinning has no migration of a name, or there is neither a pinning nor a stub.
    """
    named = [name for name, migration in spec.migrations.items() if not (migration.timestamp or migration.verbatim)]
    folder = migrations or feedstock / STUBS
    mistakes = [_unknown(name, migrations, place) for name in named if not is_file(folder / f"{name}.yaml")]
    if mistakes:
        raise InputError.of(mistakes)
    known = {**spec.migrations, **{name: _read(folder / f"{name}.yaml") for name in named}}
    for name, migration in known.items():
        copy = feedstock / STUBS / f"{name}.yaml"
        if migration.verbatim is None and is_file(copy) and _read(copy) == migration:
            known[name] = migration.model_copy(update={"verbatim": read_text(copy, within=feedstock)})
    return spec.model_copy(update={"migrations": known})


def _read(path: Path) -> Migration:
    """The time stamp and number of a migration, which stand in lines of their own.

    Lines are searched, since selectors may follow any of them and make the rest no YAML.
    """
    text = read_text(path, within=path.parent)
    timestamp, number = _TIMESTAMP.search(text), _NUMBER.search(text)
    if timestamp is None:
        raise InputError("the migration has no migrator_ts", path=path)
    numbered = number or re.search(r"migration_number:\s*\n\s+(\d+)", text)
    return Migration(timestamp=timestamp[1], number=int(numbered[1]) if numbered else 1)


def _unknown(name: str, migrations: Path | None, place: Path | None) -> Mistake:
    if migrations is None:
        hint = "Give a pinning with --pinning, fetch one with 'feedstock-tools pinning update', or write its timestamp."
        return Mistake(f"the time stamp of the migration '{name}' is in conda-forge's pinning", place, hint=hint)
    names = sorted(path.stem for path in migrations.glob("*.yaml"))
    hint = nearest(name, names, f"It has {', '.join(names) or 'none'}.")
    return Mistake(f"the pinning has no migration '{name}'", place, hint=hint)
