"""Amounts as people write them, the tokens of a run, and the order of its rows."""

from __future__ import annotations

import pytest

from feedstock_tools.builds.plan.capacity import Capacity, Share, Tokens, jobs_of
from feedstock_tools.builds.plan.needs import Declared, Needs, Work, in_order, needs_of
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.units import size_of, time_of

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 GiB", 64 * GIB), ("500MB", 500 * 10**6), ("16G", 16 * GIB), ("1.5 KiB", 1536), ("1024", 1024)],
)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90 s", 90), ("30 min", 1800), ("1.5h", 5400)])
def test_times(text: str, seconds: float) -> None:
    assert time_of(text) == seconds


@pytest.mark.parametrize("text", ["", "much", "-1 GiB", "0", "3 GiBs", "1 PiB"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(InputError, match="not a valid amount"):
        size_of(text)
    with pytest.raises(InputError, match="not a valid duration"):
        time_of(text)


def test_tokens_are_given_until_they_are_out_and_taken_back() -> None:
    tokens = Tokens(Capacity((0, 1, 2, 3), 4 * GIB))
    first = tokens.take(3, 2 * GIB, None)
    assert first == Share((0, 1, 2), 2 * GIB, 2)  # two jobs of 1 GiB fit into its memory
    assert tokens.take(2, GIB, None) is None
    assert tokens.take(1, 3 * GIB, None) is None
    second = tokens.take(1, 2 * GIB, 4 * GIB)
    assert second == Share((3,), 2 * GIB, 1)
    tokens.give_back(first)
    assert tokens.take(3, 2 * GIB, None) == first


def test_a_build_that_wants_more_than_there_is_gets_all() -> None:
    assert Tokens(Capacity((0, 1), 2 * GIB)).take(32, 64 * GIB, None) == Share((0, 1), 2 * GIB, 2)


def test_jobs_fit_into_the_memory() -> None:
    assert jobs_of(32, 64 * GIB, 4 * GIB) == 16
    assert jobs_of(32, 64 * GIB, None) == 32
    assert jobs_of(32, GIB, 4 * GIB) == 1


def test_needs_come_from_the_spec_then_from_history_then_by_equal_parts() -> None:
    machine = Capacity(tuple(range(8)), 16 * GIB)
    assert needs_of(Declared(), machine, 2, None) == Needs(4, 8 * GIB, source={"cores": "default", "memory": "default"})
    remembered = needs_of(Declared(), machine, 2, 8 * GIB)
    assert (remembered.memory, remembered.source["memory"]) == (10 * GIB, "history")
    stated = Declared.of({"cores": 2, "memory": "1 GiB", "time": "3 h", "gpu": False})
    assert stated == Declared(cores=2, memory=GIB, seconds=10800)
    assert needs_of(stated, machine, 2, 8 * GIB).source == {"cores": "spec", "memory": "spec"}


def work(name: str, seconds: float | None, *outputs: str) -> Work:
    """A row that misses some outputs."""
    made = tuple(PlannedOutput(each, "1", "0", 0, "linux-64", each) for each in outputs)
    row = PlannedRow(name, {}, None, None, made)
    return Work(PlannedConfiguration(name, "linux-64", (row,)), row, "", {}, made, Needs(1, GIB), seconds)


def test_the_longest_rows_are_built_first() -> None:
    rows = [work("short", 1, "a"), work("long", 9, "b"), work("unknown", None, "c"), work("middle", 5, "d")]
    assert [each.name for each in in_order(rows)] == ["long", "middle", "short", "unknown"]


def test_what_others_need_is_built_before_them() -> None:
    rows = [work("alone", 9, "x"), work("py3.11", 3, "lib", "a"), work("py3.12", 4, "lib", "b")]
    assert [each.name for each in in_order(rows)] == ["py3.12", "alone", "py3.11"]
