"""The agenda as a graph of outputs: the row that makes each, the order of rows, and the total duration.

A node is a missing output, an edge leads from an output to one that cannot begin before it exists. If
several rows need the same missing output, one makes it, and the others wait for it. One row needs no graph, and so not
networkx, whose import takes longer than the rest of a command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapreplace
from typing import TYPE_CHECKING

from feedstock_tools.builds.plan.row import Row
from feedstock_tools.feedstock.planned import PackageId

if TYPE_CHECKING:
    import networkx as nx


def output_graph(rows: Sequence[Row]) -> nx.DiGraph[PackageId]:
    """The outputs that rows make, each with its `row` and `seconds` (0 where unknown).

    A row builds its outputs in order, and begins after other rows have made the outputs that it needs from them.

    Args:
        rows: in an order in which each row makes those of its missing outputs that no earlier row makes, and shared
            builds come before the rows that wait for them.
    """
    import networkx as nx

    graph: nx.DiGraph[PackageId] = nx.DiGraph()
    for row in rows:
        made_before = [package for package in (*_missing(row), *row.wanted.after) if package in graph]
        own = [output for output in row.wanted.missing if output.package_id not in graph]
        for output in own:
            graph.add_node(output.package_id, row=row.name, seconds=row.wanted.seconds.get(output.name, 0.0))
        chain = [output.package_id for output in own]
        nx.add_path(graph, chain)
        graph.add_edges_from((package, chain[0]) for package in made_before if chain)
    return graph


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The build order: rows come before those that wait for their outputs, and among equals the longest first.

    The rows of the first generation wait for no other; rows that others wait for come first, then those with
    the longest path of dependent outputs. Without known times the order of the plan is kept.
    """
    if len(rows) < 2:
        return list(rows)
    import networkx as nx

    longest = sorted(rows, key=lambda row: (bool(row.wanted.after), -(row.wanted.expected or 0.0)))
    graph = output_graph(longest)
    begins = {row.name: _first_package(row, graph) for row in longest}
    generation = {row: at for at, level in enumerate(nx.topological_generations(_of_rows(graph))) for row in level}
    waited_for = {row for package, after in graph.edges if (row := _maker(graph, package)) != _maker(graph, after)}
    behind = _seconds_behind(graph)

    def urgency(row: Row) -> tuple[int, bool, float]:
        package = begins[row.name]
        if package is None:  # others make all its missing outputs, so nothing is left to do when its turn comes
            return len(graph), True, 0.0
        return generation[row.name], row.name not in waited_for, -behind[package]

    return sorted(longest, key=urgency)


def seconds_left(rows: Sequence[Row], jobs: int, done: AbstractSet[PackageId] = frozenset()) -> float | None:
    """The remaining duration of some rows by known times; None if there are none.

    It is at least the longest path through the graph, and at least the duration of the rows if they begin in their
    order, up to `jobs` at a time.

    Args:
        rows: in their order.
        jobs: the maximum number of parallel rows.
        done: the packages of outputs that have been built meanwhile.
    """
    if len(rows) < 2:
        return sum(_known_seconds(rows, done).values()) or None
    graph = output_graph(rows)
    graph.remove_nodes_from(done)
    of_row: dict[str, float] = {}
    for _, data in graph.nodes(data=True):
        of_row[data["row"]] = of_row.get(data["row"], 0.0) + data["seconds"]
    durations = [of_row[row.name] for row in rows if of_row.get(row.name)]
    if not durations:
        return None
    ends = [0.0] * min(jobs, len(durations))
    for seconds in durations:
        heapreplace(ends, ends[0] + seconds)
    return max(*ends, *_seconds_behind(graph).values())


def _known_seconds(rows: Sequence[Row], done: AbstractSet[PackageId]) -> dict[PackageId, float]:
    """The known duration of each missing output that has not been built meanwhile."""
    return {
        package: row.wanted.seconds[output.name]
        for row in rows
        for output in row.wanted.missing
        if (package := output.package_id) not in done and output.name in row.wanted.seconds
    }


def _seconds_behind(graph: nx.DiGraph[PackageId]) -> Mapping[PackageId, float]:
    """Output → the seconds of the longest path that begins with it."""
    import networkx as nx

    behind: dict[PackageId, float] = {}
    for package in reversed(list(nx.topological_sort(graph))):
        later = max((behind[after] for after in graph.successors(package)), default=0.0)
        behind[package] = graph.nodes[package]["seconds"] + later
    return behind


def _of_rows(graph: nx.DiGraph[PackageId]) -> nx.DiGraph[str]:
    """The rows that make outputs, each before the rows that wait for one of its outputs."""
    import networkx as nx

    rows: nx.DiGraph[str] = nx.DiGraph()
    rows.add_nodes_from(_maker(graph, package) for package in graph)
    pairs = ((_maker(graph, before), _maker(graph, after)) for before, after in graph.edges)
    rows.add_edges_from((before, after) for before, after in pairs if before != after)
    return rows


def _maker(graph: nx.DiGraph[PackageId], package: PackageId) -> str:
    row: str = graph.nodes[package]["row"]
    return row


def _first_package(row: Row, graph: nx.DiGraph[PackageId]) -> PackageId | None:
    """The first output that a row makes; None if others make all its missing outputs."""
    return next((package for package in _missing(row) if _maker(graph, package) == row.name), None)


def _missing(row: Row) -> list[PackageId]:
    return [output.package_id for output in row.wanted.missing]
