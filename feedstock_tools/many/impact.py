"""What a change of the pinning does to the feedstocks of an index: jobs, packages, and the order of rebuilding.

A feedstock is rendered again only if it could change: it mentions a changed key, or one that is zipped with it, or has
a migration that changed. All others count as untouched by the names that the index knows; `every` renders them too.
The index keeps what came out, with a digest of what the feedstock could see of both pinnings, so that an interrupted
run goes on, and the next change renders only what it reaches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from feedstock_tools.rerender.source import Pinning as FoundPinning
from feedstock_tools.rerender.source import find_pinning
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

    `jobs` and `packages` are those after the change. `unnamed` says why packages of some jobs are not known, and
    `error` which of the two renderings failed, and why.
    """

    name: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    jobs: int = 0
    packages: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unnamed: str = ""
    error: str = ""

    @classmethod
    def recalled(cls, known: Mapping[str, Any]) -> Touched:
        """One that the index kept as JSON."""
        values: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in known.items()}
        return cls(**values)

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
        failed: those that could not be read, or fail to render with one of the pinnings.
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


@dataclass(frozen=True, slots=True)
class _Pinning:
    """The text of a pinning: lines by key, zip groups, and migrations by file name with their time stamps."""

    blocks: Mapping[str, list[str]]
    groups: frozenset[tuple[str, ...]]
    migrations: Mapping[str, tuple[str, str]]

    @classmethod
    def read(cls, path: Path) -> _Pinning:
        """A pinning as `rerender` takes it; raises InputError if it cannot be read."""
        found = find_pinning(path)
        blocks = _blocks(found.config)
        return cls(blocks, frozenset(_groups(blocks)), _migrations(found))

    def seen_by(self, words: Collection[str], migrations: Mapping[str, str], rules: Rules) -> list[object]:
        """All that a feedstock could see of it, by the rule of `Change.why`."""
        seen = {key for key in self.blocks if _is_mentioned(key, words)} | _ABOUT_KEYS | rules.always_kept
        seen |= {key for group in self.groups if seen & set(group) for key in group}
        stamps = set(migrations.values())
        own = {name: text for name, (stamp, text) in self.migrations.items() if name in migrations or stamp in stamps}
        return [{key: self.blocks[key] for key in sorted(seen & self.blocks.keys())}, dict(sorted(own.items()))]


def _change(old: _Pinning, new: _Pinning, migration: MigrationFile | None, rules: Rules) -> Change:
    """What differs between two pinnings, or what a migration sets."""
    both: tuple[Mapping[str, list[str]], ...]
    if migration:
        both = (old.blocks, _blocks(migration.path))
        keys, groups = set(migration.keys), old.groups.union(_groups(both[1]))
    else:
        both = (old.blocks, new.blocks)
        keys = {key for key in both[0].keys() | both[1].keys() if both[0].get(key) != both[1].get(key)}
        groups = old.groups | new.groups
    for part in keys & _ABOUT_KEYS:
        for block in both:
            keys |= set(_NAMES.findall("\n".join(block.get(part, ()))))
    keys -= _ABOUT_KEYS
    zipped = {key for group in groups if keys & set(group) for key in group}
    sides = (old.migrations, new.migrations)
    names = {name for side in sides for name in side if old.migrations.get(name) != new.migrations.get(name)}
    stamps = {each[name][0] for name in names for each in sides if name in each} - {""}
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


def _migrations(pinning: FoundPinning) -> dict[str, tuple[str, str]]:
    paths = sorted(pinning.migrations.glob("*.yaml")) if pinning.migrations else []
    texts = {path.name: read_text(path, LARGEST_SETTINGS, within=None) for path in paths}
    return {name: (found[1] if (found := _STAMP.search(text)) else "", text) for name, text in texts.items()}


def impact(
    index: Index, before: Path, after: Path, *, every: bool = False, jobs: int = 1, bounds: Bounds = READING
) -> Impact:
    """What a change of the pinning does to the feedstocks of an index.

    Args:
        before: a pinning as `rerender` takes it; and so is `after`, or a migration to add to the first.
        every: render every feedstock again, as a check.
        jobs: how many processes work in parallel.
        bounds: for each feedstock.
    """
    rules = Rules.newest()
    migration = read_migration(after) if is_migration(after) else None
    pinnings = (_Pinning.read(before), _Pinning.read(before if migration else after))
    change = _change(*pinnings, migration, rules)
    about = [rules.name, read_text(after, LARGEST_SETTINGS, within=None) if migration else ""]
    reasons: dict[str, str] = {}
    untouched: list[str] = []
    wanted: list[Member] = []
    seen: dict[str, str] = {}
    results: list[Touched] = []
    for member, words, migrations, error in index.members():
        if error:
            results.append(Touched(member.name, error=f"could not be read: {error.splitlines()[0]}"))
            continue
        why = change.why(words, migrations)
        if not why and not every:
            untouched.append(member.name)
            continue
        reasons[member.name] = why or _NO_REASON
        inputs = [about, *(pinning.seen_by(words, migrations, rules) for pinning in pinnings)]
        seen[member.name] = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        known = None if every else index.recall(member.name, seen[member.name])
        if known is None:
            wanted.append(member)
        else:
            results.append(Touched.recalled(known))
    for member, found in each_bounded(partial(_touched, before, migration or after, rules), wanted, jobs, bounds):
        if isinstance(found, FeedstockError):
            found = Touched(member.name, error=found.mistakes[0].message)
        elif not found.error:
            index.remember(member.name, seen[member.name], asdict(found))
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
        (packages, unnamed), (gone, before_unnamed) = (
            _packages(folder, each.configurations, names, rules) for each in (new, old)
        )
    return Touched(
        member.name,
        _sorted(new.files.keys() - old.files.keys()),
        _sorted(old.files.keys() - new.files.keys()),
        _sorted(changed),
        len(new.files),
        _sorted(packages - gone, ""),
        _sorted(gone - packages, ""),
        unnamed or before_unnamed,
    )


def _packages(
    folder: Path, configurations: Iterable[Configuration], files: Collection[str], rules: Rules
) -> tuple[set[str], str]:
    """The packages of some configurations, and why those of others are not known."""
    found: set[str] = set()
    unnamed = ""
    for configuration in configurations:
        if f"{configuration.name}.yaml" in files:
            try:
                found |= {package.path for package in output_files(folder, (configuration,), rules)}
            except InputError as error:
                unnamed = unnamed or f"{configuration.name}: {error.mistakes[0].message}"
    return found, unnamed


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
