"""Paths through the pin graph: by which other kinds two kinds are bound that no bound names together."""

from __future__ import annotations

from feedstock_tools.pins.graph.model import PinGraph


def kinds_between(graph: PinGraph, start: str, goal: str) -> tuple[str, ...] | None:
    """The kinds on a shortest path of bounds from one kind to another; None where no path joins them.

    >>> kinds_between(graph_of_facts(load_cuda()), "cudnn", "gcc")
    ('cuda',)
    """
    import networkx as nx

    network: nx.Graph[str] = nx.Graph()
    network.add_edges_from((kind, other) for kind in sorted(graph.beside) for other in sorted(graph.beside[kind]))
    try:
        return tuple(nx.shortest_path(network, start, goal))[1:-1]
    except (nx.NodeNotFound, nx.NetworkXNoPath):
        return None
