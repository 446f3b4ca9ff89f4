"""`feedstock-tools init`, `import` and `generate`: a spec, and the files that it describes."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.fetched import pinning_of, required_pinning
from feedstock_tools.cli.opening import commit_changes, repository_of, tidy
from feedstock_tools.cli.printing import say, say_diff, say_error, say_note, say_result
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import find_feedstock
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import SPEC_NAME

if TYPE_CHECKING:
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.package_names import PackageNames
    from feedstock_tools.generate.project import Project

#: A name in a package index, with a version or without.
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([0-9][0-9a-z.]*))?")
#: The kind of a change that `generate` would make → what --check says of the file.
_STALE = {
    "new": "is missing",
    "changed": "does not match the spec",
    "removed": "is no longer part of the spec",
    "edited": "was edited since it was generated",
}


@command("init")
@click.argument("project", required=False)
@options.output("a folder of the project's name", kind="folder")
@click.option(
    "--maintainer", metavar="NAME", help="Name on GitHub (default: a placeholder; without PROJECT, asked for)."
)
@click.option("--self-contained", is_flag=True, help="Write a spec that needs no pinning.")
@click.option(
    "--names",
    metavar="FILE|URL|newest",
    help="Mapping of conda-forge's packages to PyPI's projects; newest fetches it (default: the one used last).",
)
def init(
    project: str | None, output: Path | None, maintainer: str | None, self_contained: bool, names: str | None
) -> int:
    """Write a first feedstock.yaml for PROJECT, with comments on what to decide next.

    PROJECT is a folder with a CMakeLists.txt, pyproject.toml or setup.py, the address of a git repository (file://
    too), or the name of a project on PyPI (NAME==VERSION too); without one the command asks. Nothing of it is run.
    """
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.generate.first_spec import first_spec
    from feedstock_tools.generate.spec.reading import spec_from_text
    from feedstock_tools.platforms import Platform
    from feedstock_tools.variants.files import load

    source = _asked("Folder, git address or PyPI name of the project") if project is None else project
    if project is None and maintainer is None:
        maintainer = _asked("Your name on GitHub")
    read, origin, folder = _found(source, output, _names(names))
    path = folder / SPEC_NAME
    if path.exists():
        raise InputError(
            "there is a spec already", path=path, hint="Name another folder with --output, or remove that file."
        )
    found = pinning_of(None)
    pinned = {"pinned": load(found.path, Platform.parse("linux-64")).values} if found else {}
    text = first_spec(read, origin, maintainer, self_contained=self_contained, **pinned)
    spec_from_text(text, path)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    say(f"wrote {path}; next: feedstock-tools generate {shlex.quote(str(folder))}")
    return 0


def _asked(question: str) -> str:
    """The answer of who runs the command.

    Raises:
        InputError: the input has none.
    """
    try:
        return str(click.prompt(question, err=True))
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            say_error("")
            hint = "Give them: feedstock-tools init PROJECT --maintainer NAME"
            raise InputError("the input ends before the project and your name on GitHub", hint=hint) from error
        raise


def _names(requested: str | None) -> PackageNames:
    """The names of packages for PyPI's projects: of the requested mapping, which is kept, else of the kept one.

    Raises:
        InputError: it is not such a mapping.
        WorkError: it cannot be fetched.
    """
    from feedstock_tools.channel.http import NoAnswerError, ask
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.generate.package_names import LARGEST_MAPPING, MAPPING, kept_mapping, kept_names, read_names

    if requested is None:
        return kept_names(os.environ)
    kept = kept_mapping(os.environ)
    address = MAPPING if requested == "newest" else requested
    if not address.startswith("https://"):
        return read_names(Path(address))
    try:
        reply = ask(address, seconds=60, largest=LARGEST_MAPPING)
    except NoAnswerError as error:
        raise WorkError(f"the mapping of names cannot be fetched: {error}") from error
    if reply.status != 200:
        raise WorkError(f"the mapping of names cannot be fetched: the server answers with {reply.status}")
    with temporary_folder() as temporary:
        fetched = temporary / kept.name
        fetched.write_bytes(reply.content)
        names = read_names(fetched)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, reply.content)
    return names


def _found(source: str, output: Path | None, names: PackageNames) -> tuple[Project, Origin, Path]:
    """The project, where its sources are, and the folder for the spec.

    Raises:
        InputError: there is no such project.
        WorkError: its repository cannot be cloned, or the package index cannot be read.
    """
    from feedstock_tools.feedstock.git import project_at, tag_before
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.project import read_project, with_tag

    what = "Name a folder, the address of a git repository (https://…, file://…), or a project on PyPI."
    if not source.strip():
        raise InputError("the name of the project is empty", hint=what)
    if Path(source).is_file():
        raise InputError("is a file", path=Path(source), hint=f"Name the folder of the project: {Path(source).parent}")
    if Path(source).is_dir():
        project = read_project(Path(source), names)
        project = with_tag(project, tag_before(Path(source)) if project.version_of_git is not None else None)
        folder = output or Path(f"{project.name}-feedstock")
        relative = Path(os.path.relpath(Path(source).resolve(), (folder / "recipe").resolve())).as_posix()
        return project, Origin({"path": relative}), folder
    if (name := _NAME.fullmatch(source)) is not None:
        return _released(name[1], name[2], output, names)
    if "://" not in source and not source.startswith("git@"):
        raise InputError(f"there is no project '{source}'", hint=what)
    with project_at(source) as (files, commit, tag):
        project = with_tag(read_project(files, names), tag)
    homepage = source.removesuffix(".git") if source.startswith("http") else None
    return (
        project,
        Origin({"git": source, "rev": commit}, homepage, homepage),
        output or Path(f"{project.name}-feedstock"),
    )


def _released(name: str, version: str | None, output: Path | None, names: PackageNames) -> tuple[Project, Origin, Path]:
    """A project of the package index that pip is configured with, by the texts of its newest source archive."""
    from feedstock_tools.channel.package_index import newest_source, unpack_texts
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.project import read_project

    archive = newest_source(name, os.environ, version)
    with temporary_folder() as temporary:
        texts = temporary / "texts"
        unpack_texts(archive, texts)
        project = replace(read_project(texts, names), version=archive.version)
    url = archive.template or archive.url
    page = f"https://pypi.org/project/{archive.name}/" if "://files.pythonhosted.org/" in archive.url else None
    origin = Origin({"url": url, "sha256": archive.sha256}, page)
    return project, origin, output or Path(f"{project.name}-feedstock")


@command("import")
@options.folder
@options.pinning
@options.offline
@options.dry_run
@options.as_json
@options.force
@click.option("--update", is_flag=True, help="Take a change of the generated files into the feedstock.yaml.")
def import_(feedstock: Path, pinning: str | None, dry_run: bool, as_json: bool, force: bool, update: bool) -> int:
    """Write a feedstock.yaml whose generated recipe renders to what the recipe of FEEDSTOCK renders to.

    The recipe and the generated one are rendered in every configuration and rerendered; the exit code is 1 if they
    differ. Lines that the spec copies are counted. The recipe itself stays as it is: `generate --force` replaces it.
    """
    from feedstock_tools.feedstock.configurations import in_short
    from feedstock_tools.importing import import_recipe, refuse_spec
    from feedstock_tools.report.spec import imported_text, imported_values

    if update and (force or as_json):
        raise click.UsageError("--update excludes --force and --json")
    folder = find_feedstock(feedstock, Path()).folder
    if update:
        return _update(folder, required_pinning(pinning, folder), dry_run=dry_run)
    if not (force or dry_run):
        refuse_spec(folder)
    imported = import_recipe(folder, pinning=required_pinning(pinning, folder))
    if not dry_run:
        path = imported.write(force=force)
        if not as_json:
            say(f"wrote {path}")
    say_result(imported_values(imported) if as_json else imported_text(in_short(imported, folder)))
    return 1 if imported.differences else 0


def _update(folder: Path, pinning: Path | None, *, dry_run: bool) -> int:
    """Take what changed in the generated files of a feedstock into its spec; writes nothing that would lose a part."""
    from feedstock_tools.files.changes import Changes
    from feedstock_tools.importing import update_spec
    from feedstock_tools.report.spec import differing

    updated = update_spec(folder, pinning=pinning)
    say_diff([updated.diff()])
    for text in updated.missed:
        say_note(f"not in the spec: {text}")
    for line in differing(updated.differences):
        say_note(line)
    if updated.missed or updated.differences:
        say_note("Nothing was written. Edit the spec until `generate --check` finds no difference.")
        return 1
    if updated.text == updated.before:
        say_note("the spec generates these files already")
    elif not dry_run:
        path = folder / SPEC_NAME
        Changes(folder, {path: updated.text.encode()}, seen={path: updated.before.encode()}).apply()
        say_note(f"changed {SPEC_NAME}; feedstock-tools generate --diff shows what else it writes")
    return 0


def _schema(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from feedstock_tools.generate.spec.model import json_schema

        say_result(json_schema())
        context.exit()


@command("generate")
@options.folder
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_schema,
    help="Print the JSON Schema of feedstock.yaml, for editors, and write nothing.",
)
@click.option(
    "--recipe-format",
    type=click.Choice(["v0", "v1"]),
    help="Write a meta.yaml, v0, or a recipe.yaml, v1 (default: as the spec says).",
)
@options.output("the feedstock", kind="folder")
@options.pinning
@options.check
@options.diff
@options.as_json
@options.force
@options.commit("Generate from feedstock.yaml")
def generate(
    feedstock: Path,
    recipe_format: Literal["v0", "v1"] | None,
    output: Path | None,
    pinning: str | None,
    check: bool,
    show_diff: bool,
    as_json: bool,
    force: bool,
    commit: str | None,
) -> int:
    """Write the recipe and variant files that FEEDSTOCK/feedstock.yaml describes.

    The pinning (default: the newest fetched one) has the time stamps of migrations that the spec only names.
    conda-smithy's .gitignore hides the spec and its record from git: --commit adds them all the same.
    """
    from feedstock_tools.feedstock.git import left_out
    from feedstock_tools.generate import generating

    if as_json and show_diff:
        raise click.UsageError("--json and --diff exclude each other")
    if commit is not None and (check or output):
        raise click.UsageError("--commit excludes --check and --output")
    found = pinning_of(pinning)
    migrations = found.migrations_folder if found else None
    generated = generating.generate(feedstock, recipe_format=recipe_format, folder=output, migrations=migrations)
    repository = repository_of(generated.folder, commit)
    folder, stale = generated.folder, generated.stale
    for change in stale:
        if show_diff or (change.kind == "edited" and not (force or check)):
            say_diff([change.diff()], err=as_json)
    if as_json:
        say_result([{"file": folder / change.path, "state": change.kind} for change in generated.changes])
    if check:
        for change in stale:
            say_error(f"{folder / change.path}: {_STALE[change.kind]}")
        return 1 if stale else 0
    tidy(feedstock)
    generated.apply(force=force)
    for change in () if as_json else stale:
        say(f"{'removed' if change.new is None else 'wrote'} {folder / change.path}")
    if not (stale or as_json):
        say(f"nothing to do: {len(generated.texts)} files match the spec")
    if repository is not None:
        commit_changes(repository, generated.kept(), "Generate from feedstock.yaml", commit)
    elif output is None and 0 < len(hidden := left_out(folder, generated.kept().seen)) < len(generated.kept().seen):
        say_note(f"note: git ignores {', '.join(hidden)}; `generate --commit` adds them all the same")
    return 0
