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

from feedstock_tools.builds.plan.row import Place, Work, place_of

if TYPE_CHECKING:
    import networkx as nx


def output_graph(works: Sequence[Work]) -> nx.DiGraph[Place]:
    """The outputs that rows make, each with its `row` and `seconds` (0 where unknown).

    A row builds its outputs in order, and begins after other rows have made the outputs that it needs from them.

    Args:
        works: in an order in which each row makes those of its missing outputs that no earlier row makes.
    """
    import networkx as nx

    graph: nx.DiGraph[Place] = nx.DiGraph()
    for work in works:
        made_before = [place for output in work.missing if (place := place_of(output)) in graph]
        own = [output for output in work.missing if place_of(output) not in graph]
        for output in own:
            graph.add_node(place_of(output), row=work.name, seconds=work.seconds.get(output.name, 0.0))
        chain = [place_of(output) for output in own]
        nx.add_path(graph, chain)
        graph.add_edges_from((place, chain[0]) for place in made_before if chain)
    return graph


def in_order(works: Sequence[Work]) -> list[Work]:
    """The build order: rows come before those that wait for their outputs, and among equals the longest first.

    The rows of the first generation wait for no other; rows that others wait for come first, then those with
    the longest path of dependent outputs. Without known times the order of the plan is kept.
    """
    if len(works) < 2:
        return list(works)
    import networkx as nx

    longest = sorted(works, key=lambda work: -(work.expected or 0.0))
    graph = output_graph(longest)
    begins = {work.name: _first_place(work, graph) for work in longest}
    generation = {place: at for at, level in enumerate(nx.topological_generations(_of_rows(graph))) for place in level}
    waited_for = {row for place, after in graph.edges if (row := _row(graph, place)) != _row(graph, after)}
    behind = _seconds_behind(graph)

    def urgency(work: Work) -> tuple[int, bool, float]:
        place = begins[work.name]
        if place is None:  # others make all its missing outputs, so nothing is left to do when its turn comes
            return len(graph), True, 0.0
        return generation[work.name], work.name not in waited_for, -behind[place]

    return sorted(longest, key=urgency)


def seconds_left(works: Sequence[Work], jobs: int, done: AbstractSet[Place] = frozenset()) -> float | None:
    """The remaining duration of some rows by known times; None if there are none.

    It is at least the longest path through the graph, and at least the duration of the rows if they begin in their
    order as soon as one of `jobs` places is free.

    Args:
        works: in their order.
        jobs: the maximum number of parallel rows.
        done: the places of outputs that have been built meanwhile.
    """
    if len(works) < 2:
        return sum(_known_seconds(works, done).values()) or None
    graph = output_graph(works)
    graph.remove_nodes_from(done)
    of_row: dict[str, float] = {}
    for _, data in graph.nodes(data=True):
        of_row[data["row"]] = of_row.get(data["row"], 0.0) + data["seconds"]
    durations = [of_row[work.name] for work in works if of_row.get(work.name)]
    if not durations:
        return None
    ends = [0.0] * min(jobs, len(durations))
    for seconds in durations:
        heapreplace(ends, ends[0] + seconds)
    return max(*ends, *_seconds_behind(graph).values())


def _known_seconds(works: Sequence[Work], done: AbstractSet[Place]) -> dict[Place, float]:
    """The known duration of each missing output that has not been built meanwhile."""
    return {
        place: work.seconds[output.name]
        for work in works
        for output in work.missing
        if (place := place_of(output)) not in done and output.name in work.seconds
    }


def _seconds_behind(graph: nx.DiGraph[Place]) -> Mapping[Place, float]:
    """Output → the seconds of the longest path that begins with it."""
    import networkx as nx

    behind: dict[Place, float] = {}
    for place in reversed(list(nx.topological_sort(graph))):
        later = max((behind[after] for after in graph.successors(place)), default=0.0)
        behind[place] = graph.nodes[place]["seconds"] + later
    return behind


def _of_rows(graph: nx.DiGraph[Place]) -> nx.DiGraph[str]:
    """The rows that make outputs, each before the rows that wait for one of its outputs."""
    import networkx as nx

    rows: nx.DiGraph[str] = nx.DiGraph()
    rows.add_nodes_from(_row(graph, place) for place in graph)
    pairs = ((_row(graph, before), _row(graph, after)) for before, after in graph.edges)
    rows.add_edges_from((before, after) for before, after in pairs if before != after)
    return rows


def _row(graph: nx.DiGraph[Place], place: Place) -> str:
    row: str = graph.nodes[place]["row"]
    return row


def _first_place(work: Work, graph: nx.DiGraph[Place]) -> Place | None:
    """The first output that a row makes; None if others make all its missing outputs."""
    places = (place_of(output) for output in work.missing)
    return next((place for place in places if _row(graph, place) == work.name), None)
