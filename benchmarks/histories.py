"""Feedstocks in bare clones: their commits, the files of these, and the rules and pinning of a commit's day.

MIRROR holds bare clones as OWNER+NAME/repo, that of conda-forge-pinning-feedstock among them.
"""

from __future__ import annotations

import argparse
import bisect
import calendar
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from feedstock_tools.errors import FeedstockError
from feedstock_tools.rerender.rules import Rules

RECIPES = ("recipe/meta.yaml", "recipe/recipe.yaml")
FORGE = "conda-forge.yml"
MIGRATIONS = ".ci_support/migrations/"
PINNING = "conda-forge+conda-forge-pinning-feedstock"
#: What conda-smithy writes into the message of its commits; a merged branch may repeat it as an item.
_RERENDERED = r"[Rr]e-?rendered with (conda-build \S+, )?conda-smithy [0-9.]+,?.* and conda-forge-pinning [0-9.]+"
_VERSIONS = re.compile(r"conda-smithy ([\d.]*\d).*? and conda-forge-pinning ([\d.]*\d)")


def options(text: str | None) -> argparse.ArgumentParser:
    """The options of a program with this docstring, whose first argument is MIRROR."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    return parser


def git(repository: Path, *words: str, given: bytes | None = None) -> bytes:
    """The output of a git command, which reads what it is given."""
    return subprocess.run(["git", "-C", str(repository), *words], input=given, capture_output=True, check=True).stdout


def feedstocks(mirror: Path) -> list[Path]:
    """The repositories of feedstocks."""
    return [path for path in sorted(mirror.glob("*-feedstock/repo")) if path.parent.name != PINNING]


@dataclass(frozen=True)
class Commit:
    """A commit of a feedstock's main line, against its first parent.

    `paths` are what it changed of the recipe, conda-forge.yml and migrations: the kind (A, M, D) of each.
    """

    repository: Path
    name: str
    paths: Mapping[str, str]

    @property
    def feedstock(self) -> str:
        """The feedstock's name."""
        return self.repository.parent.name.partition("+")[2]

    @property
    def parent(self) -> str:
        """The first parent."""
        return f"{self.name}^1"

    @property
    def recipe(self) -> str:
        """The recipe, if the commit changed it, else ''."""
        return next((path for path in RECIPES if self.paths.get(path) == "M"), "")

    def text(self, path: str, *, before: bool = False) -> str:
        """A file of the commit, or of its parent; '' if it is missing or not UTF-8."""
        try:
            return git(self.repository, "show", f"{self.parent if before else self.name}:{path}").decode()
        except (subprocess.CalledProcessError, UnicodeDecodeError):
            return ""

    @cached_property
    def recorded(self) -> tuple[str, str] | None:
        """conda-smithy and pinning of the last rerender up to this commit; None if none is recorded."""
        words = ["log", "-1", "--extended-regexp", f"--grep={_RERENDERED}", "--format=%B", self.name]
        found = _VERSIONS.findall(git(self.repository, *words).decode(errors="replace"))
        return found[-1] if found else None


def main_line(repository: Path) -> Iterator[Commit]:
    """The commits of the main line that changed the recipe, conda-forge.yml or migrations, newest first."""
    words = ["log", "--first-parent", "-m", "--name-status", "--no-renames", "--format=C %H"]
    name = ""
    paths: dict[str, str] = {}
    for line in git(repository, *words, "--", "recipe", FORGE, MIGRATIONS).decode(errors="replace").splitlines():
        if line.startswith("C "):
            if paths:
                yield Commit(repository, name, paths)
            name, paths = line[2:], {}
        elif "\t" in line:
            kind, path = line.split("\t", 1)
            paths[path] = kind
    if paths:
        yield Commit(repository, name, paths)


def unpack(repository: Path, commit: str, folder: Path, *paths: str) -> Path:
    """Write files of a commit into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = git(repository, "archive", commit, *paths)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def lay_out(repository: Path, commit: str, folder: Path, *paths: str) -> bool:
    """Write files of a commit into a new folder; whether the clone has them all and there is a recipe."""
    try:
        unpack(repository, commit, folder, *paths)
    except subprocess.CalledProcessError:  # a clone without its whole history, or its largest files
        return False
    return any((folder / recipe).is_file() for recipe in RECIPES)


@dataclass(frozen=True)
class Day:
    """What a commit was rerendered with."""

    rules: Rules
    pinning: Path


class Pinnings:
    """The pinnings of the past, each laid out once as its package is."""

    def __init__(self, mirror: Path, cache: Path) -> None:
        self.repository, self.cache = mirror / PINNING / "repo", cache
        log = git(self.repository, "log", "--first-parent", "--format=%ct %H", "HEAD").decode()
        self.commits = sorted((int(at), commit) for at, commit in (line.split() for line in log.splitlines()))

    def day_of(self, commit: Commit) -> Day | None:
        """The rules and pinning of the last rerender up to a commit; None if none is recorded that we know."""
        if commit.recorded is None:
            return None
        smithy, pinning = commit.recorded
        try:
            return Day(Rules.parse(smithy), self.folder(pinning))
        except (FeedstockError, ValueError):
            return None

    @property
    def newest(self) -> Path:
        """The pinning of the newest commit."""
        return self._laid_out("newest", self.commits[-1][1])

    def folder(self, version: str) -> Path:
        """The pinning with a version such as 2021.10.29.07.34.22, which is the time of its commit.

        Since August 2025 many messages lack the last digit of the seconds.
        """
        parts = [int(word) for word in version.split(".")]
        lost = 9 if len(version.rpartition(".")[2]) == 1 else 0
        time = calendar.timegm((*(parts + [0] * 6)[:6], 0, 0, 0)) + lost
        return self._laid_out(version, self.commits[max(0, bisect.bisect_right(self.commits, (time, "~")) - 1)][1])

    def _laid_out(self, name: str, commit: str) -> Path:
        folder = self.cache / name
        if not folder.is_dir():
            recipe = unpack(self.repository, commit, folder / "source", "recipe") / "recipe"
            (folder / "share" / "conda-forge").mkdir(parents=True)
            (recipe / "conda_build_config.yaml").rename(folder / "conda_build_config.yaml")
            migrations = folder / "share" / "conda-forge" / "migrations"
            (recipe / "migrations").rename(migrations) if (recipe / "migrations").is_dir() else migrations.mkdir()
        return folder
