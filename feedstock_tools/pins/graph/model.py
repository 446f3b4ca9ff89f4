"""The pin graph: releases, the bounds between them, and whether a set of releases meets all bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from feedstock_tools.pins.graph.kinds import KINDS, newest_first, preferred

#: A set of releases: the version of each kind, None for a kind that the set lacks.
Chosen = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """One version of one kind of thing: `cuda 11.2`, `platform linux-64`."""

    kind: str
    version: str

    def __str__(self) -> str:
        return f"{KINDS[self.kind].title if self.kind in KINDS else self.kind} {self.version}"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a release goes with others: one of these versions for each named kind.

    The set must have a release of the kinds in `needed`; the others may be missing. `source` is the origin of the way.
    """

    allowed: Mapping[str, frozenset[str]]
    needed: frozenset[str] = frozenset()
    source: str = ""

    def __hash__(self) -> int:
        return hash((frozenset(self.allowed.items()), self.needed, self.source))

    def open_to(self, chosen: Chosen) -> bool:
        """Whether the choices so far leave this way open; kinds that `chosen` does not have are undecided."""
        for kind, versions in self.allowed.items():
            if kind not in chosen:
                continue
            version = chosen[kind]
            if version is None:
                if kind in self.needed:
                    return False
            elif version not in versions:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Bound:
    """A requirement of a release on others: one of its ways. `said` is the bound in words, without the release.

    `unknown` marks a bound that stands for missing facts: it allows nothing, since nothing may be claimed.
    """

    release: Release
    ways: tuple[Way, ...]
    said: str
    unknown: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that the bound restricts."""
        return frozenset(kind for way in self.ways for kind in way.allowed)

    def restricts(self, kind: str) -> bool:
        """Whether the kind is one of those."""
        return any(kind in way.allowed for way in self.ways)

    def open_to(self, chosen: Chosen) -> bool:
        """Whether one of the ways is open."""
        for way in self.ways:  # noqa: SIM110 - `any` takes twice as long, and answers spend much of their time here
            if way.open_to(chosen):
                return True
        return False

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the bound, each once."""
        return tuple(dict.fromkeys(way.source for way in self.ways if way.source))


@dataclass(frozen=True)
class PinGraph:
    """Releases and bounds. `origins` names the source of each kind's releases, `name` that of the graph."""

    releases: frozenset[Release]
    bounds: tuple[Bound, ...]
    origins: Mapping[str, str] = field(default_factory=dict)
    name: str = "the facts"

    @cached_property
    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """The versions of each kind, newest first; kinds in the order in which answers choose them."""
        versions: dict[str, set[str]] = {}
        for release in self.releases:
            versions.setdefault(release.kind, set()).add(release.version)
        order = list(KINDS)
        kinds = sorted(versions, key=lambda kind: (order.index(kind) if kind in KINDS else 1.5, kind))
        return MappingProxyType({kind: newest_first(kind, versions[kind]) for kind in kinds})

    @cached_property
    def preferred(self) -> Mapping[str, tuple[str, ...]]:
        """The versions of each kind in the order in which an answer tries them."""
        return MappingProxyType({kind: preferred(kind, versions) for kind, versions in self.versions.items()})

    def without_unknown(self) -> PinGraph:
        """The graph as it would be if all that is not known were possible."""
        return replace(self, bounds=tuple(bound for bound in self.bounds if not bound.unknown))

    @cached_property
    def _bounds_of(self) -> Mapping[Release, tuple[Bound, ...]]:
        bounds_of: dict[Release, list[Bound]] = {}
        for bound in self.bounds:
            bounds_of.setdefault(bound.release, []).append(bound)
        return {release: tuple(bounds) for release, bounds in bounds_of.items()}

    @cached_property
    def _bounds_by_kind(self) -> dict[tuple[Release, str], tuple[tuple[Bound, ...], tuple[Bound, ...]]]:
        return {}

    def _bounds_on(self, release: Release, kind: str) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
        """The requirements of a release that restrict a kind, and its others."""
        found = self._bounds_by_kind.get((release, kind))
        if found is None:
            bounds = self.bounds_of(release)
            on_kind = tuple(bound for bound in bounds if bound.restricts(kind))
            found = self._bounds_by_kind[release, kind] = (on_kind, tuple(b for b in bounds if not b.restricts(kind)))
        return found

    def bounds_of(self, release: Release) -> tuple[Bound, ...]:
        """The requirements of a release on others."""
        return self._bounds_of.get(release, ())

    @cached_property
    def beside(self) -> Mapping[str, frozenset[str]]:
        """For each kind those that share a bound with it; kinds without bounds are missing."""
        neighbours: dict[str, set[str]] = {}
        for together in {bound.kinds | {bound.release.kind} for bound in self.bounds}:
            for kind in together:
                neighbours.setdefault(kind, set()).update(together - {kind})
        return {kind: frozenset(others) for kind, others in neighbours.items()}

    def open_to(self, chosen: Chosen, release: Release) -> bool:
        """Whether a release is compatible with the choices so far, by the bounds of both."""
        return bool(self.open_versions(chosen, release.kind, (release.version,)))

    def open_versions(self, chosen: Chosen, kind: str, versions: Iterable[str]) -> tuple[str, ...]:
        """Those versions of a kind, in their order, that are compatible with the choices so far."""
        on_kind: list[Bound] = []
        for other, version in chosen.items():
            if version is not None:
                restricting, others = self._bounds_on(Release(other, version), kind)
                if not all(bound.open_to(chosen) for bound in others):
                    return ()
                on_kind += restricting
        joined, opened = dict(chosen), []
        for version in versions:
            joined[kind] = version
            for bound in (*self.bounds_of(Release(kind, version)), *on_kind):  # a loop, as in `Bound.open_to`
                if not bound.open_to(joined):
                    break
            else:
                opened.append(version)
        return tuple(opened)

    def partners(self, release: Release, kind: str) -> tuple[str, ...]:
        """The versions of a kind that go with a release, by the bounds of both, newest first."""
        return self.open_versions({release.kind: release.version}, kind, self.versions.get(kind, ()))


def merged(graphs: Iterable[PinGraph]) -> PinGraph:
    """One graph of several, with the name of the first; the origin of a kind is the first that names it."""
    parts = list(graphs)
    origins: dict[str, str] = {}
    for part in reversed(parts):
        origins.update(part.origins)
    return PinGraph(
        releases=frozenset(release for part in parts for release in part.releases),
        bounds=tuple(dict.fromkeys(bound for part in parts for bound in part.bounds)),
        origins=MappingProxyType(origins),
        name=parts[0].name,
    )
