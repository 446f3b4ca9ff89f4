"""The pin graph: releases, the bounds between them, and whether a set of releases meets all bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from feedstock_tools.pins.graph.kinds import KINDS, Demand, newest_first, preferred

if TYPE_CHECKING:
    import networkx

#: The forms that networkx writes the graph in.
FORMS = ("graphml", "json")
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

    The set must have a release of the kinds in `needed`; the others may be missing. `source` is the origin of the way,
    and `said` the way in words where the bound's are those of several.
    """

    allowed: Mapping[str, frozenset[str]]
    needed: frozenset[str] = frozenset()
    source: str = ""
    said: str = ""

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
        return frozenset(kind for way in self.ways for kind in way.allowed)

    def restricts(self, kind: str) -> bool:
        return any(kind in way.allowed for way in self.ways)

    def open_to(self, chosen: Chosen) -> bool:
        for way in self.ways:  # noqa: SIM110 - `any` takes twice as long, and answers spend much of their time here
            if way.open_to(chosen):
                return True
        return False

    def left(self, kind: str, versions: list[str], chosen: Chosen) -> list[str]:
        """Those versions of a kind, not among the choices so far, with which these leave a way open."""
        allowed: set[str] = set()
        for way in self.ways:
            if way.open_to(chosen):
                if kind not in way.allowed:
                    return versions
                allowed |= way.allowed[kind]
        return [version for version in versions if version in allowed]

    def said_of(self, chosen: Chosen) -> str:
        """The bound in words, of the way in which a set meets it if that has some."""
        return next((way.said for way in self.ways if way.said and way.open_to(chosen)), self.said)

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

    @cached_property
    def needed(self) -> frozenset[str]:
        """The kinds that some release needs."""
        bounds = (bound for release in self.releases for bound in self.bounds_of(release))
        return frozenset(name for bound in bounds for way in bound.ways for name in way.needed)

    @cached_property
    def _admitted(self) -> dict[Demand, frozenset[str]]:
        return {}

    def admitted(self, demand: Demand) -> frozenset[str]:
        """The versions that meet a demand: read once, since the search for a conflict asks a thousand times."""
        if demand not in self._admitted:
            self._admitted[demand] = frozenset(filter(demand.admits, self.versions.get(demand.kind, ())))
        return self._admitted[demand]

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

    @cached_property
    def _opened(self) -> dict[tuple[object, ...], dict[str, bool]]:
        """By a kind and the choices that its bounds look at: which versions these leave open. A search asks often."""
        return {}

    def bounds_of(self, release: Release) -> tuple[Bound, ...]:
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
        return bool(self.open_versions(chosen, release.kind, (release.version,)))

    def open_versions(self, chosen: Chosen, kind: str, versions: Iterable[str]) -> tuple[str, ...]:
        """Those versions of a kind, in their order, that are compatible with the choices so far."""
        left, decided = list(versions), {other: chosen[other] for other in chosen if other != kind}
        for other, version in chosen.items():
            if version is not None:
                restricting, others = self._bounds_on(Release(other, version), kind)
                if not all(bound.open_to(chosen) for bound in others):
                    return ()
                for bound in restricting:
                    left = bound.left(kind, left, decided)
        beside = self.beside.get(kind, frozenset())
        known = self._opened.setdefault((kind, *((other, decided[other]) for other in decided if other in beside)), {})
        for version in left:
            if version not in known:
                bounds = self.bounds_of(Release(kind, version))
                known[version] = all(bound.open_to({**decided, kind: version}) for bound in bounds)
        return tuple(version for version in left if known[version])

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


def network(graph: PinGraph) -> networkx.MultiDiGraph[str]:
    """The graph with releases and bounds as nodes, by names such as `cuda=11.2` and `cuda=11.2#1`.

    A release has `kind`, `version` and the `origin` of its kind. A bound has `said`, its words, `unknown`, whether it
    stands for missing facts, and the number of its `ways`: one of them must be met as a whole. An edge leads from a
    release to each of its bounds, and from a bound to each release that a way of it allows: with the number of the
    `way`, whether a release of that kind is `needed`, and the `citation`. Kinds of which a way allows no release are in
    `closed`, as `0:glibc`.
    """
    import networkx as nx

    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for release in sorted(graph.releases):
        origin = graph.origins.get(release.kind, graph.name)
        made.add_node(_name(release), type="release", kind=release.kind, version=release.version, origin=origin)
        for number, bound in enumerate(graph.bounds_of(release), 1):
            name = f"{_name(release)}#{number}"
            closed = []
            for at, way in enumerate(bound.ways):
                for kind, versions in way.allowed.items():
                    attributes = {"way": at, "needed": kind in way.needed, "citation": way.source}
                    allowed = [Release(kind, version) for version in sorted(versions)]
                    edges = [(name, _name(other), attributes) for other in allowed if other in graph.releases]
                    made.add_edges_from(edges)
                    closed += [] if edges else [f"{at}:{kind}"]
            about = {"said": bound.said, "unknown": bound.unknown, "ways": len(bound.ways), "closed": " ".join(closed)}
            made.add_node(name, type="bound", **about)
            made.add_edge(_name(release), name)
    return made


def written(graph: PinGraph, form: str) -> str:
    """The graph in one of `FORMS`: GraphML, or the JSON of networkx (`node_link_graph` reads it)."""
    import networkx as nx

    made = network(graph)
    if form == "graphml":
        return "\n".join(nx.generate_graphml(made))
    # As `node_link_data` writes it, whose name for the list of edges differs between networkx's versions.
    nodes = [{**attributes, "id": name} for name, attributes in made.nodes(data=True)]
    edges = [
        {**attributes, "source": one, "target": other, "key": key}
        for one, other, key, attributes in made.edges(keys=True, data=True)
    ]
    return json.dumps({"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}, indent=1)


def kinds_between(graph: PinGraph, start: str, goal: str) -> tuple[str, ...] | None:
    """The kinds on a shortest path of bounds from one kind to another; None where no path joins them.

    >>> kinds_between(graph_of_facts(load_cuda()), "cudnn", "gcc")
    ('cuda',)
    """
    import networkx as nx

    kinds: nx.Graph[str] = nx.Graph()
    kinds.add_edges_from((kind, other) for kind in sorted(graph.beside) for other in sorted(graph.beside[kind]))
    try:
        return tuple(nx.shortest_path(kinds, start, goal))[1:-1]
    except (nx.NodeNotFound, nx.NetworkXNoPath):
        return None


def _name(release: Release) -> str:
    return f"{release.kind}={release.version}"
