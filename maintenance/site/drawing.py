"""Flowcharts of Mermaid as pictures: without a network, a browser has nothing that draws them."""

from __future__ import annotations

import re
from html import escape

import networkx as nx

_NODE = re.compile(r'^\s*(\w+)\["([^"]+)"\]', re.MULTILINE)
_EDGE = re.compile(r"^\s*(\w+) (-->|-\.->) (\w+)", re.MULTILINE)
_HEIGHT, _GAP, _RISE, _LETTER = 32, 24, 76, 8.2


def drawn(flowchart: str, name: str) -> str:
    """A flowchart from top to bottom as an svg element; what nothing below needs stands as high as it can.

    Args:
        flowchart: lines `a["label"]`, `a --> b` and `a -.-> b` (dashed).
        name: what it shows, for a screen reader.
    """
    labels = dict(_NODE.findall(flowchart))
    edges = {(first, second): arrow for first, arrow, second in _EDGE.findall(flowchart)}
    rows = _rows(labels, list(edges))
    widths = {node: len(label) * _LETTER + 24 for node, label in labels.items()}
    broad = max(sum(widths[node] + _GAP for node in row) - _GAP for row in rows) + 8
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        x = (broad - sum(widths[node] + _GAP for node in row) + _GAP) / 2
        for node in row:
            places[node] = (x + widths[node] / 2, 20 + number * _RISE)
            x += widths[node] + _GAP
    high = 40 + (len(rows) - 1) * _RISE
    parts = [_edge(places[first], places[second], arrow) for (first, second), arrow in edges.items()]
    parts += [_box(label, *places[node], widths[node]) for node, label in labels.items()]
    said = "; ".join(f"{labels[first]} uses {labels[second]}" for first, second in edges)
    return (
        f'<svg class="flowchart" viewBox="0 0 {broad:.0f} {high}" role="img" aria-label="{escape(f"{name}: {said}")}" '
        f'style="max-width: {broad:.0f}px">{"".join(parts)}</svg>'
    )


def _rows(labels: dict[str, str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """The nodes by the longest way down from a node that nothing uses; in a row near those above that use them."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(labels)
    graph.add_edges_from(edges)
    rows = [list(generation) for generation in nx.topological_generations(graph)]
    at = {node: float(place) for row in rows for place, node in enumerate(row)}
    for row in rows[1:]:
        above = {node: [at[user] for user in graph.predecessors(node)] for node in row}
        row.sort(key=lambda node: sum(above[node]) / len(above[node]))
        at |= {node: float(place) for place, node in enumerate(row)}
    return rows


def _box(label: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(label)}</text>'
    )


def _edge(begin: tuple[float, float], end: tuple[float, float], arrow: str) -> str:
    (x1, y1), (x2, y2) = begin, end
    y1, y2 = y1 + _HEIGHT / 2, y2 - _HEIGHT / 2
    bend = min(30.0, (y2 - y1) / 2)
    dashed = ' class="dashed"' if arrow == "-.->" else ""
    return (
        f'<path{dashed} d="M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"/>'
        f'<path class="tip" d="M{x2 - 4:.0f},{y2 - 7:.0f} L{x2:.0f},{y2:.0f} L{x2 + 4:.0f},{y2 - 7:.0f}"/>'
    )
