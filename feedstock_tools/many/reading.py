"""What the index knows of a feedstock: read from its own files, without a pinning."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.many.workspace import Member, opened
from feedstock_tools.reading import CI_SUPPORT, read_bytes
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.yaml_reading.nodes import read_texts

#: A name of a variable, a package or a file; what is joined by signs counts as a whole and in parts.
_WORDS = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_PARTS = re.compile(r"[.-]")
#: Larger files of a recipe, such as patches, hold no names of variables.
_LARGEST_TEXT = 1 << 20
_SECTIONS = ("build", "host", "run", "constrains")


@dataclass(frozen=True, slots=True)
class IndexedPackage:
    """A package that a job makes: its requirements by section, and its run exports, by the names of packages."""

    name: str
    version: str
    noarch: bool
    requirements: dict[str, tuple[str, ...]]
    run_exports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexedJob:
    """A job, which is a file of `.ci_support`: its platform, the values of the keys that it uses, and its packages."""

    name: str
    platform: str
    values: dict[str, tuple[str, ...]]
    packages: tuple[IndexedPackage, ...]


@dataclass(frozen=True, slots=True)
class Indexed:
    """A feedstock as read.

    Attributes:
        error: why it, or a job of it, cannot be rendered; empty if all can.
        words: all names that its recipe, its settings and its migrations mention: a key that is not
            among them, and is zipped with none of them, changes nothing.
        migrations: its own, by file name, with their time stamps.
    """

    member: Member
    format: str = ""
    providers: tuple[str, ...] = ()
    jobs: tuple[IndexedJob, ...] = ()
    words: frozenset[str] = frozenset()
    migrations: dict[str, str] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0


def read_member(member: Member) -> Indexed:
    """Read a feedstock; what is wrong with it is part of the answer."""
    began = time.process_time()
    try:
        with opened(member) as folder:
            return _read(member, folder, began)
    except FeedstockError as error:
        return Indexed(member, error=_reason(error), seconds=time.process_time() - began)


def _read(member: Member, folder: Path, began: float) -> Indexed:
    rules = Rules.newest()
    forge = read_forge(folder, rules)
    jobs, error = [], ""
    for configuration in read_configurations(folder):
        builder = forge.builder_of(configuration.platform)
        packages: tuple[Package, ...] = ()
        try:
            packages = packages_of(forge.recipe.parent, configuration, builder, rules, v1=forge.is_v1)
        except InputError as wrong:
            error = error or f"{configuration.name}: {_reason(wrong)}"
        found = tuple(_package(package) for package in packages)
        jobs.append(IndexedJob(configuration.name, configuration.platform.subdir, dict(configuration.values), found))
    platforms = {job.platform for job in jobs}
    return Indexed(
        member,
        "recipe.yaml" if forge.is_v1 else "meta.yaml",
        tuple(sorted({each.provider for each in forge.renderings if each.platform.subdir in platforms})),
        tuple(jobs),
        frozenset(_words(folder, forge)) | {key for job in jobs for key in job.values} | set(_required(jobs)),
        dict(_migrations(folder)),
        error,
        time.process_time() - began,
    )


def _package(package: Package) -> IndexedPackage:
    requirements = {
        section: tuple(sorted({name_in(each) for each in getattr(package, section) or ()})) for section in _SECTIONS
    }
    exports = sorted({name_in(each) for kind in package.run_exports.values() for each in kind})
    return IndexedPackage(
        package.name, package.output.version, bool(package.output.noarch), requirements, tuple(exports)
    )


def _words(folder: Path, forge: Forge) -> Iterator[str]:
    """The names that texts mention, as keys of variants are written."""
    own = (path for path in sorted(forge.recipe.parent.rglob("*")) if path.is_file() and not path.is_symlink())
    for path in (*own, folder / "conda-forge.yml", *sorted((folder / CI_SUPPORT / "migrations").glob("*.yaml"))):
        if not path.is_file() or path.stat().st_size > _LARGEST_TEXT or path.suffix in (".patch", ".diff"):
            continue
        for found in set(_WORDS.findall(read_bytes(path, _LARGEST_TEXT, within=folder).decode(errors="replace"))):
            yield _PARTS.sub("_", found)
            yield from _PARTS.split(found)


def _required(jobs: list[IndexedJob]) -> Iterator[str]:
    for job in jobs:
        for package in job.packages:
            for names in package.requirements.values():
                yield from (_PARTS.sub("_", name) for name in names)


def _migrations(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((folder / CI_SUPPORT / "migrations").glob("*.yaml")):
        content = read_texts(path, within=folder)
        yield path.name, str(content.get("migrator_ts", "")) if isinstance(content, dict) else ""


def _reason(error: FeedstockError) -> str:
    return error.mistakes[0].message if isinstance(error, InputError) else str(error)
