"""Which version of CUDA or Python a commit of a feedstock added or dropped."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.edits.histories import (
    MIGRATIONS,
    RECIPES,
    Commit,
    Day,
    Pinnings,
    blocks,
    sides,
    write_rerendered,
)
from feedstock_tools.edit.variants.lists import CUDA, PYTHON, VersionKey
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.rerender.rerendering import Rerender, rerender

#: The file names of migrations of CUDA and Python.
MIGRATION = re.compile(r"(python|cuda)[_-]?\d[^/]*\.ya?ml$")
#: Where the package of the pinning has its migrations.
PINNED = "share/conda-forge/migrations"
#: The variant files of a recipe.
VARIANTS = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")
_LIST = re.compile(r"\d+\.\d+")
_THREADED = re.compile(r"_cp\d+t$")


@dataclass(frozen=True)
class Deed:
    """What a commit did: added or dropped a version."""

    commit: Commit
    day: Day
    pinning: Path
    choice: VersionKey
    version: str
    adds: bool
    also: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[str, ...]:
        """The version, and the same of Python without the global interpreter lock if that comes or goes with it."""
        return (self.version, *self.also)

    @property
    def name(self) -> str:
        """The edit."""
        return f"{'add' if self.adds else 'drop'}-{self.choice.title.lower()}"

    @property
    def about(self) -> re.Pattern[str]:
        """What lines about this version have: the version, or the next one of Python, as limits of selectors do."""
        major, minor = self.version.removesuffix("t").split(".")
        following = f"{major}{int(minor) + 1}" if self.choice is PYTHON else f"{major}{minor}"
        digits = rf"(?:\bpy(?:thon)?|cuda)\W{{0,5}}_?(?:{major}{minor}|{following})(?!\d)"
        dotted = rf"(?<![\d.]){major}\.(?:{minor}|{int(minor) + 1})(?!\d)"
        return re.compile(rf"{digits}|(?:python|cuda|skip).*{dotted}")


def possible(commit: Commit) -> set[str]:
    """The edits that a commit may have made, by the paths and lines that it changes; none if it is no candidate."""
    found: set[str] = set()
    for path, kind in commit.paths.items():
        named = MIGRATION.search(path) if path.startswith(MIGRATIONS) else None
        if named:
            found |= {f"{edit}-{named[1]}" for edit in {"A": ("add",), "D": ("drop",)}.get(kind, ("add", "drop"))}
        elif path in VARIANTS:
            found |= {f"{edit}-{key}" for edit in ("add", "drop") for key in ("python", "cuda")}
    lines = [line for block in blocks(*sides(commit, commit.recipe)) for line in block.lines] if commit.recipe else []
    for key, pattern in (("python", r"skip.*py|match\(python"), ("cuda", r"skip.*cuda")):
        if any(re.search(pattern, line) for line in lines):
            found |= {f"add-{key}", f"drop-{key}"}
    return found


def versions(result: Rerender, key: str) -> frozenset[str]:
    """The versions of a key in all configurations, without patch level."""
    values = [text for configuration in result.configurations for text in configuration.values.get(key, ())]
    return frozenset(version for text in values if (version := version_in(text)))


def version_in(text: str) -> str:
    """The version that a value of CUDA or Python is, such as 12.9 or 3.14t; '' for another."""
    match = _LIST.match(text)
    return f"{match[0]}{'t' if _THREADED.search(text) else ''}" if match else ""


def known_day(commit: Commit, pinnings: Pinnings) -> Day | None:
    """The rules and pinning of the last rerender; with the pinning of the commit's time, if a migration that the commit
    adds is younger than that rerender, which would take it for closed."""
    day = pinnings.day_of(commit)
    added = [Path(path).name for path, kind in commit.paths.items() if MIGRATION.search(path) and kind == "A"]
    if day is None or not added:
        return day
    newest = pinnings.folder(commit.date)
    known = [{path.name for path in (folder / PINNED).glob("*")} for folder in (day.pinning, newest)]
    return replace(day, pinning=newest) if any(name in known[1] - known[0] for name in added) else day


def deed_of(commit: Commit, pinnings: Pinnings, place: Path) -> Deed | str:
    """What a commit did, or why it does not count; `place`/theirs holds the commit rerendered."""
    day = known_day(commit, pinnings)
    if day is None:
        return "no rerender is recorded before"
    try:
        before = rerender(commit.lay_out(place / "before", before=True), pinning=day.pinning, rules=day.rules)
        after = write_rerendered(commit.lay_out(place / "theirs"), day)
    except FeedstockError:
        return "parent or commit does not rerender"
    found = []
    for choice in (CUDA, PYTHON):
        old, new = versions(before, choice.name), versions(after, choice.name)
        newest = pinnings.folder(commit.date)
        found += [Deed(commit, day, newest, choice, version, adds=version in new) for version in sorted(old ^ new)]
    if len(found) == 2 and found[1].version == f"{found[0].version}t" and found[0].adds == found[1].adds:
        found = [replace(found[0], also=(found[1].version,))]
    if len(found) == 1 and not mentions(found[0]):
        return "no changed line is about the version"
    return found[0] if len(found) == 1 else "several versions" if found else "no version comes or goes"


def listed(text: str, key: str) -> list[str]:
    """The values of a key in a variant file."""
    document = Document(Path("conda_build_config.yaml"), text)
    return [item.text for entry in document.entries(key) for item in entry.value.items]


def mentions(deed: Deed) -> bool:
    """Whether a changed line of the recipe, a variant file or a migration is about the version."""
    commit = deed.commit
    paths = [path for path in commit.paths if path in (*RECIPES, *VARIANTS)]
    lines = [line for path in paths for block in blocks(*sides(commit, path)) for line in block.lines]
    moved = [path for path, kind in commit.paths.items() if path.startswith(MIGRATIONS) and kind != "M"]
    named = any(MIGRATION.search(path) for path in moved)
    return named or any(deed.about.search(line) or _LIST.match(line.strip(" -'\"")) for line in lines)
