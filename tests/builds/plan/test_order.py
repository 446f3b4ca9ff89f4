"""The agenda as a graph of outputs: the order of its rows, and how long all of it takes."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.order import in_order, output_graph, seconds_left
from feedstock_tools.builds.plan.row import Row
from tests.support.rows import made_up_agenda, made_up_row, made_up_shared


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows that share some of their outputs."""
    names = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=4)
    times = st.one_of(st.none(), st.integers(1, 50).map(float))
    return [
        made_up_row(f"row {number}", *sorted(draw(names)), seconds=draw(times))
        for number in range(draw(st.integers(1, 7)))
    ]


def test_the_longest_rows_are_built_first() -> None:
    found = in_order(
        [
            made_up_row("short", "a", seconds=1),
            made_up_row("long", "b", seconds=9),
            made_up_row("unknown", "c"),
            made_up_row("middle", "d", seconds=5),
        ]
    )
    assert [each.name for each in found] == ["long", "middle", "short", "unknown"]


def test_what_others_need_is_built_before_them() -> None:
    found = in_order(
        [
            made_up_row("alone", "x", seconds=9),
            made_up_row("py3.11", "lib", "a", seconds=3),
            made_up_row("py3.12", "lib", "b", seconds=4),
        ]
    )
    assert [each.name for each in found] == ["py3.12", "alone", "py3.11"]


def test_of_rows_that_others_wait_for_the_one_with_most_behind_it_is_first() -> None:
    chain = [made_up_row("begin", "a", "b", seconds=2), made_up_row("end", "b", "c", seconds={"b": 1.0, "c": 0.5})]
    longer = [made_up_row("first", "x", "y", seconds=2), made_up_row("second", "y", "z", seconds={"y": 1.0, "z": 0.9})]
    assert [each.name for each in in_order([*chain, *longer])][:2] == ["first", "begin"]


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [(1, 18.0), (2, 9.0), (3, 9.0), (10, 7.0)],
)
def test_the_time_is_that_of_the_longest_path_or_of_the_rows_side_by_side(jobs: int, seconds: float) -> None:
    todo = [
        made_up_row("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0}),
        made_up_row("py3.11", "lib", "a", seconds={"a": 4.0}),
        made_up_row("x", "x", seconds=5),
        made_up_row("y", "y", seconds=5),
    ]
    assert seconds_left(todo, jobs) == pytest.approx(seconds)


def test_what_is_done_leaves_less_time() -> None:
    todo = [
        made_up_row("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0}),
        made_up_row("py3.11", "lib", "a", seconds={"a": 4.0}),
    ]
    lib = todo[0].wanted.missing[0].package_id
    assert (seconds_left(todo, 2), seconds_left(todo, 2, {lib})) == (7.0, 4.0)
    assert seconds_left(todo, 2, {package for each in todo for package in each.wanted.packages}) is None


def test_one_row_takes_the_time_of_what_it_still_makes() -> None:
    row = made_up_row("py3.12", "lib", "b", seconds={"lib": 3.0, "b": 1.0})
    lib = row.wanted.missing[0].package_id
    assert (in_order([row]), seconds_left([row], 2), seconds_left([row], 2, {lib})) == ([row], 4.0, 1.0)
    assert seconds_left([row], 2, row.wanted.packages) is None
    assert seconds_left([made_up_row("py3.12", "lib")], 1) is None
    assert (in_order([]), seconds_left([], 1)) == ([], None)


def test_no_time_is_known_before_the_first_build() -> None:
    assert seconds_left([made_up_row("a", "a"), made_up_row("b", "b")], 2) is None


@given(rows())
def test_a_row_comes_after_those_that_make_something_for_it(unordered: list[Row]) -> None:
    ordered = in_order(unordered)
    assert sorted(each.name for each in ordered) == sorted(each.name for each in unordered)
    position = {each.name: at for at, each in enumerate(ordered)}
    graph = output_graph(ordered)
    assert nx.is_directed_acyclic_graph(graph)
    assert set(graph) == {package for each in unordered for package in each.wanted.packages}
    for before, after in graph.edges:
        assert position[graph.nodes[before]["row"]] <= position[graph.nodes[after]["row"]]


def test_a_shared_build_comes_before_its_heirs_and_the_longest_of_them_after_it() -> None:
    shared, *heirs = made_up_shared(
        "compiled", made_up_row("short", "a", seconds=2.0), made_up_row("long", "b", seconds=9.0)
    )
    shared = replace(shared, wanted=replace(shared.wanted, seconds={"compiled": 60.0}))
    ordered = in_order([*heirs, made_up_row("other", "x", seconds=1.0), shared])
    assert [row.name for row in ordered] == ["compiled", "other", "long", "short"]
    assert seconds_left(ordered, 2) == 69.0


def test_hosts_that_keep_a_shared_build_need_not_run_it_and_one_host_keeps_all_that_a_row_inherits() -> None:
    only, both = made_up_row("only", "a", needs=Needs(memory=9 << 30)), made_up_row("both", "b", needs=Needs(gpu=True))
    first, only, both = made_up_shared("first", only, both)
    second, both = made_up_shared("second", both)
    agenda = made_up_agenda(second, only, both, kept=(first,))
    anywhere = agenda.on_hosts()
    assert [row.name for row in anywhere.todo] == ["first", "second", "only", "both"]
    needs = {row.name: row.wanted.needs for row in anywhere.todo}
    assert (needs["first"].gpu, needs["first"].memory) == (True, 9 << 30)
    assert needs["second"].shared == first.wanted.makes_kept
    assert needs["both"].shared == first.wanted.makes_kept | second.wanted.makes_kept
    host = Host("host", Capacity((0,), 1), 1, keeps=second.wanted.makes_kept)
    there = agenda.on_hosts([host])
    assert [row.name for row in there.todo] == ["first", "only", "both"]
    assert [row.name for row in there.kept] == ["second"]
    assert there.todo[0].wanted.needs.shared == second.wanted.makes_kept
