"""`feedstock-tools init`: a first feedstock.yaml for a project."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say
from feedstock_tools.errors import InputError, WorkError

if TYPE_CHECKING:
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.project import Project

#: Seconds that a clone may take.
_CLONE = 600
#: A name in a package index, with a version or without.
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([0-9][0-9a-z.]*))?")


@click.command("init", cls=Command)
@click.argument("project", required=False)
@options.output("a folder of the project's name", kind="folder")
@click.option("--maintainer", metavar="NAME", help="Name on GitHub (default: asked for in a terminal).")
@click.option("--self-contained", is_flag=True, help="Write a spec that needs no pinning.")
def command(project: str | None, output: Path | None, maintainer: str | None, self_contained: bool) -> int:
    """Write a first feedstock.yaml for PROJECT, with comments on what to decide next.

    PROJECT is a folder with a CMakeLists.txt or a pyproject.toml, the address of a git repository (file:// too), or the
    name of a project on PyPI (NAME==VERSION too); without one the command asks. No code of the project is run.
    """
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.generate.first_spec import first_spec
    from feedstock_tools.generate.spec.reading import spec_from_text
    from feedstock_tools.reading import SPEC_NAME

    source = project or str(click.prompt("Folder, git address or PyPI name of the project", err=True))
    name = maintainer or (str(click.prompt("Your name on GitHub", err=True)) if project is None else "someone")
    read, origin, folder = _found(source, output)
    path = folder / SPEC_NAME
    if path.exists():
        raise InputError(
            "there is a spec already", path=path, hint="Name another folder with --output, or remove that file."
        )
    text = first_spec(read, origin, name, self_contained=self_contained)
    spec_from_text(text, path)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    say(f"wrote {path}; next: feedstock-tools generate {folder}")
    return 0


def _found(source: str, output: Path | None) -> tuple[Project, Origin, Path]:
    """The project, where its sources are, and the folder for the spec.

    Raises:
        InputError: there is no such project.
        WorkError: its repository cannot be cloned, or the package index cannot be read.
    """
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.project import read_project

    if Path(source).is_dir():
        project = read_project(Path(source))
        folder = output or Path(f"{project.name}-feedstock")
        relative = Path(os.path.relpath(Path(source).resolve(), (folder / "recipe").resolve())).as_posix()
        return project, Origin({"path": relative}), folder
    if (name := _NAME.fullmatch(source)) is not None:
        return _released(name[1], name[2], output)
    if "://" not in source and not source.startswith("git@"):
        hint = "Name a folder, the address of a git repository (https://…, file://…), or a project on PyPI."
        raise InputError(f"there is no project '{source}'", hint=hint)
    with tempfile.TemporaryDirectory() as clone:
        commit = _cloned(source, Path(clone))
        project = read_project(Path(clone))
    homepage = source.removesuffix(".git") if source.startswith("http") else None
    return (
        project,
        Origin({"git": source, "rev": commit}, homepage, homepage),
        output or Path(f"{project.name}-feedstock"),
    )


def _released(name: str, version: str | None, output: Path | None) -> tuple[Project, Origin, Path]:
    """A project of the package index that pip is configured with, by the texts of its newest source archive."""
    from feedstock_tools.channel.package_index import newest_source, unpack_texts
    from feedstock_tools.generate.first_spec import Origin
    from feedstock_tools.generate.project import read_project

    archive = newest_source(name, os.environ, version)
    with tempfile.TemporaryDirectory() as temporary:
        texts = Path(temporary, "texts")
        unpack_texts(archive, texts)
        project = replace(read_project(texts), version=archive.version)
    url = archive.template or archive.url
    return project, Origin({"url": url, "sha256": archive.sha256}), output or Path(f"{project.name}-feedstock")


def _cloned(address: str, folder: Path) -> str:
    """Clone a repository into an empty folder; gives its commit."""
    commands = (
        ["git", "clone", "--quiet", "--depth", "1", "--", address, str(folder)],
        ["git", "-C", str(folder), "rev-parse", "HEAD"],
    )
    done = None
    for words in commands:
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_CLONE)
        except (OSError, subprocess.SubprocessError) as error:
            reason = str(getattr(error, "stderr", None) or error).strip()
            raise WorkError(f"{address} cannot be cloned: {reason}") from error
    return done.stdout.strip() if done else ""
