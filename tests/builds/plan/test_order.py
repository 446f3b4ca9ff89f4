"""The agenda as a graph of outputs: the order of its rows, and how long all of it takes."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.builds.plan.order import in_order, output_graph, seconds_left
from feedstock_tools.builds.plan.row import Work, place_of
from tests.support.works import made_up_work as work


@st.composite
def rows(draw: st.DrawFn) -> list[Work]:
    """Rows that share some of their outputs."""
    names = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=4)
    times = st.one_of(st.none(), st.integers(1, 50).map(float))
    return [
        work(f"row {number}", *sorted(draw(names)), seconds=draw(times)) for number in range(draw(st.integers(1, 7)))
    ]


def test_the_longest_rows_are_built_first() -> None:
    found = in_order(
        [
            work("short", "a", seconds=1),
            work("long", "b", seconds=9),
            work("unknown", "c"),
            work("middle", "d", seconds=5),
        ]
    )
    assert [each.name for each in found] == ["long", "middle", "short", "unknown"]


def test_what_others_need_is_built_before_them() -> None:
    found = in_order(
        [work("alone", "x", seconds=9), work("py3.11", "lib", "a", seconds=3), work("py3.12", "lib", "b", seconds=4)]
    )
    assert [each.name for each in found] == ["py3.12", "alone", "py3.11"]


def test_of_rows_that_others_wait_for_the_one_with_most_behind_it_is_first() -> None:
    chain = [work("begin", "a", "b", seconds=2), work("end", "b", "c", seconds={"b": 1.0, "c": 0.5})]
    longer = [work("first", "x", "y", seconds=2), work("second", "y", "z", seconds={"y": 1.0, "z": 0.9})]
    assert [each.name for each in in_order([*chain, *longer])][:2] == ["first", "begin"]


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [(1, 18.0), (2, 9.0), (3, 9.0), (10, 7.0)],
)
def test_the_time_is_that_of_the_longest_path_or_of_the_rows_side_by_side(jobs: int, seconds: float) -> None:
    todo = [
        work("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0}),
        work("py3.11", "lib", "a", seconds={"a": 4.0}),
        work("x", "x", seconds=5),
        work("y", "y", seconds=5),
    ]
    assert seconds_left(todo, jobs) == pytest.approx(seconds)


def test_what_is_done_leaves_less_time() -> None:
    todo = [work("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0}), work("py3.11", "lib", "a", seconds={"a": 4.0})]
    lib = place_of(todo[0].missing[0])
    assert (seconds_left(todo, 2), seconds_left(todo, 2, {lib})) == (7.0, 4.0)
    assert seconds_left(todo, 2, {place for each in todo for place in each.places}) is None


def test_one_row_takes_the_time_of_what_it_still_makes() -> None:
    row = work("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0})
    lib = place_of(row.missing[0])
    assert (in_order([row]), seconds_left([row], 2), seconds_left([row], 2, {lib})) == ([row], 4.0, 1.0)
    assert seconds_left([row], 2, row.places) is None
    assert seconds_left([work("py3.12", "lib")], 1) is None
    assert (in_order([]), seconds_left([], 1)) == ([], None)


def test_no_time_is_known_before_the_first_build() -> None:
    assert seconds_left([work("a", "a"), work("b", "b")], 2) is None


@given(rows())
def test_a_row_comes_after_those_that_make_something_for_it(works: list[Work]) -> None:
    ordered = in_order(works)
    assert sorted(each.name for each in ordered) == sorted(each.name for each in works)
    position = {each.name: at for at, each in enumerate(ordered)}
    graph = output_graph(ordered)
    assert nx.is_directed_acyclic_graph(graph)
    assert set(graph) == {place for each in works for place in each.places}
    for before, after in graph.edges:
        assert position[graph.nodes[before]["row"]] <= position[graph.nodes[after]["row"]]
