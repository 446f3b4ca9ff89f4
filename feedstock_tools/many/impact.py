"""What a change of the pinning does to the feedstocks of an index: jobs, packages, and the order of rebuilding.

A feedstock is rendered again only if it could change: it mentions a changed key, or one that is zipped with it, or has
a migration that changed. All others count as untouched by the names that the index knows; `every` renders them too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import READING, Bounds
from feedstock_tools.bounds.pool import each_bounded
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.many.index import Index
from feedstock_tools.many.workspace import Member, opened
from feedstock_tools.reading import LARGEST_SETTINGS, read_text
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.many import MigrationFile, migrated, read_migration
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.rerender.rerendering import Request, rerendered
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import Pinning, find_pinning
from feedstock_tools.yaml_reading.nodes import parse_texts

_KEY = re.compile(r"([A-Za-z0-9_]+):")
_NAMES = re.compile(r"[A-Za-z0-9_]+")
_STAMP = re.compile(r"^migrator_ts:\s*[\"']?([\w.]+)", re.MULTILINE)
#: Parts of a pinning that are about keys and are none.
_ABOUT_KEYS = frozenset({"zip_keys", "pin_run_as_build", "extend_keys"})
#: What a rerender takes into account although no recipe mentions it, besides what `Rules.always_kept` names.
_ALWAYS = frozenset(
    {
        "target_platform",
        "channel_sources",
        "channel_targets",
        "docker_image",
        "github_actions_labels",
        "cdt_name",
        "cdt_arch",
    }
    | {"MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION", "macos_machine"}
    | {"c_stdlib_version"}  # on macOS it decides the first of those
)
#: Key → how recipes mention it by other names: `[py<38]`, `np`, `pl`.
_ALIASES = {"python": re.compile(r"py(\d*|2k|3k)"), "numpy": re.compile("np"), "perl": re.compile("pl")}


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two pinnings: keys, with those zipped with them, and migrations by names and time stamps."""

    keys: frozenset[str]
    with_zipped: frozenset[str]
    migrations: frozenset[str]
    stamps: frozenset[str]

    def why(self, words: Collection[str], migrations: Mapping[str, str]) -> str:
        """Why a feedstock could change; empty if it cannot.

        Args:
            words: all names that it mentions.
            migrations: its own, by file name, with their time stamps.
        """
        if own := sorted(name for name, stamp in migrations.items() if name in self.migrations or stamp in self.stamps):
            return f"it has the migration {own[0]}"
        return next((f"it may use {key}" for key in sorted(self.with_zipped) if _is_mentioned(key, words)), "")


def _is_mentioned(key: str, words: Collection[str]) -> bool:
    if key in _ALWAYS or key in words:
        return True
    if (alias := _ALIASES.get(key)) is not None:
        return any(alias.fullmatch(word) for word in words)
    if "_stdlib" in key:
        return "stdlib" in words
    return "_compiler" in key and "compiler" in words and (not key.startswith("cuda_") or "cuda" in words)


@dataclass(frozen=True, slots=True)
class Touched:
    """A feedstock that was rendered with both pinnings.

    `jobs` and `packages` are those after the change. `error` says which of the two renderings failed, and why.
    """

    name: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    jobs: int = 0
    packages: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    error: str = ""

    @property
    def rebuilt(self) -> int:
        """The number of jobs to run."""
        return len(self.added) + len(self.changed)

    @property
    def is_changed(self) -> bool:
        """Whether its jobs differ."""
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change does.

    Attributes:
        changed: the feedstocks whose jobs change.
        same: those that were rendered again and stay the same, with the reason why they were.
        untouched: those that need no rendering.
        failed: those that fail to render with one of the pinnings.
        missed: with `every`, those that change although the names in the index rule it out; there should be none.
        layers: the order in which the changed ones are rebuilt: each needs only packages of earlier layers.
        cycles: groups that need each other, each with the packages by which they do; they share a layer.
    """

    change: Change
    changed: tuple[Touched, ...]
    same: Mapping[str, str]
    untouched: tuple[str, ...]
    failed: tuple[Touched, ...]
    missed: tuple[str, ...] = ()
    layers: tuple[tuple[str, ...], ...] = ()
    cycles: tuple[Mapping[str, str], ...] = ()


def change_of(before: Path, after: Path | MigrationFile, rules: Rules) -> Change:
    """What differs between two pinnings, or what a migration sets.

    Raises:
        InputError: one cannot be read.
    """
    pinnings = [find_pinning(path) for path in (before, *([after] if isinstance(after, Path) else []))]
    old, new = _blocks(pinnings[0].config), _blocks(pinnings[-1].config)
    keys = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    if isinstance(after, MigrationFile):
        keys, new = set(after.keys), _blocks(after.path)
    for part in keys & _ABOUT_KEYS:
        for block in (old, new):
            keys |= set(_NAMES.findall("\n".join(block.get(part, ()))))
    keys -= _ABOUT_KEYS
    groups = {group for block in (old, new) for group in _groups(block)}
    zipped = {key for group in groups if keys & set(group) for key in group}
    olds, news = _migrations(pinnings[0]), _migrations(pinnings[-1])
    names = {name for name in olds.keys() | news.keys() if olds.get(name) != news.get(name)}
    stamps = {
        found[1]
        for name in names
        for text in (olds.get(name), news.get(name))
        if text
        for found in _STAMP.finditer(text)
    }
    kept = (keys | zipped) & rules.always_kept  # which counts for every feedstock
    return Change(
        frozenset(keys),
        frozenset(keys | zipped) | ({"target_platform"} if kept else set()),
        frozenset(names),
        frozenset(stamps),
    )


def _blocks(path: Path) -> dict[str, list[str]]:
    """Key → the lines below it, selectors included: what is the same text is the same on every platform."""
    blocks: dict[str, list[str]] = {}
    key = ""
    for line in read_text(path, LARGEST_SETTINGS, within=None).splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _KEY.match(line):
            key = found[1]
        blocks.setdefault(key, []).append(line.rstrip())
    return blocks


def _groups(blocks: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """The zip groups, with the keys that selectors leave out on some platforms."""
    content = parse_texts("\n".join(blocks.get("zip_keys", ())), None)
    groups = content.get("zip_keys") if isinstance(content, dict) else None
    yield from (tuple(map(str, group)) for group in groups or () if isinstance(group, list))


def _migrations(pinning: Pinning) -> dict[str, str]:
    paths = sorted(pinning.migrations.glob("*.yaml")) if pinning.migrations else []
    return {path.name: read_text(path, LARGEST_SETTINGS, within=None) for path in paths}


def impact(
    index: Index, before: Path, after: Path, *, every: bool = False, jobs: int = 1, bounds: Bounds = READING
) -> Impact:
    """What a change of the pinning does to the feedstocks of an index.

    Args:
        before: a pinning as `rerender` takes it; and so is `after`, or a migration to add to the first.
        every: render every feedstock again, as a check.
        jobs: how many processes work in parallel.
        bounds: for each feedstock.

    Raises:
        InputError: a pinning cannot be read.
    """
    rules = Rules.newest()
    new = read_migration(after) if is_migration(after) else after
    change = change_of(before, new, rules)
    reasons: dict[str, str] = {}
    untouched: list[str] = []
    wanted: list[Member] = []
    for member, words, migrations in index.members():
        why = change.why(words, migrations)
        if why or every:
            reasons[member.name] = why or _NO_REASON
            wanted.append(member)
        else:
            untouched.append(member.name)
    results: list[Touched] = []
    for member, found in each_bounded(partial(_touched, before, new, rules), wanted, jobs, bounds):
        if isinstance(found, FeedstockError):
            found = Touched(member.name, error=found.mistakes[0].message)
        results.append(found)
    results.sort(key=lambda each: each.name)
    changed = tuple(each for each in results if each.is_changed and not each.error)
    failed = tuple(each for each in results if each.error)
    same = {each.name: reasons[each.name] for each in results if not each.is_changed and not each.error}
    missed = tuple(each.name for each in changed if reasons[each.name] == _NO_REASON)
    layers, cycles = _order([each.name for each in changed], index.edges([each.name for each in changed]))
    return Impact(change, changed, same, tuple(untouched), failed, missed, layers, cycles)


#: Why a feedstock was rendered again that the index rules out.
_NO_REASON = "--every"


def is_migration(path: Path) -> bool:
    """Whether a file is a migration, by its key `__migrator`, and not a pinning's."""
    return path.is_file() and "__migrator" in _blocks(path)


def _touched(before: Path, after: Path | MigrationFile, rules: Rules, member: Member) -> Touched:
    with opened(member) as folder:
        when = "before"
        try:
            old = rerendered(Request(folder, rules, before))
            when = "after"
            if isinstance(after, Path):
                new = rerendered(Request(folder, rules, after))
            else:
                new = migrated(after, member.name, Request(folder, rules, before), old)[0] or old
        except InputError as error:
            return Touched(member.name, error=f"{when} the change: {error.mistakes[0].message}")
        changed = {name for name in old.files.keys() & new.files.keys() if old.files[name] != new.files[name]}
        names = changed | (old.files.keys() ^ new.files.keys())
        if not names:
            return Touched(member.name, jobs=len(new.files))
        packages, gone = (_packages(folder, each.configurations, names, rules) for each in (new, old))
    return Touched(
        member.name,
        _sorted(new.files.keys() - old.files.keys()),
        _sorted(old.files.keys() - new.files.keys()),
        _sorted(changed),
        len(new.files),
        _sorted(packages - gone, ""),
        _sorted(gone - packages, ""),
    )


def _packages(folder: Path, configurations: Iterable[Configuration], files: Collection[str], rules: Rules) -> set[str]:
    """The packages of some configurations; none of those that cannot be rendered."""
    found: set[str] = set()
    for configuration in configurations:
        if f"{configuration.name}.yaml" in files:
            try:
                found |= {package.path for package in output_files(folder, (configuration,), rules)}
            except InputError:
                continue
    return found


def _sorted(names: Iterable[str], ending: str = ".yaml") -> tuple[str, ...]:
    return tuple(sorted(name.removesuffix(ending) for name in names))


def _order(
    names: Iterable[str], edges: Iterable[tuple[str, str, str]]
) -> tuple[tuple[tuple[str, ...], ...], tuple[Mapping[str, str], ...]]:
    """Layers of feedstocks, each of which needs only packages of earlier ones; and the cycles, which share a layer."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    for maker, user, package in edges:
        graph.add_edge(maker, user, package=package)
    groups = nx.condensation(graph)
    layers = tuple(
        tuple(sorted(name for group in layer for name in groups.nodes[group]["members"]))
        for layer in nx.topological_generations(groups)
    )
    cycles = []
    for group in groups.nodes:
        inside = groups.nodes[group]["members"]
        if len(inside) > 1:
            pairs = sorted(graph.subgraph(inside).edges)
            cycles.append({f"{maker} → {user}": str(graph.edges[maker, user]["package"]) for maker, user in pairs})
    return layers, tuple(cycles)
