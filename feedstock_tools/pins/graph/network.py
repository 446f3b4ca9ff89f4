"""The pin graph in networkx: written for other tools, and searched for paths.

Resolving asks the graph itself (`model`): to import networkx and to fill it takes longer than to answer, see
docs/decisions.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from feedstock_tools.pins.graph.model import PinGraph, Release

if TYPE_CHECKING:
    import networkx

#: The forms that the graph can be written in.
FORMS = ("graphml", "json")


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
