"""Numbers, times, amounts and tables, as people write and read them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, strategies

from feedstock_tools import wording
from feedstock_tools.wording import aligned, size_of, size_text, table


def test_the_examples_hold() -> None:
    assert doctest.testmod(wording).failed == 0
    assert doctest.testmod(wording).attempted > 8


@given(strategies.integers(1, 2**50))
def test_a_size_that_was_written_is_read_as_about_the_same(size: int) -> None:
    assert abs(size_of(size_text(size)) - size) <= max(0.05 * 1024, 0.05 * size)


def test_a_table_has_a_rule_and_columns_as_wide_as_their_widest_cell() -> None:
    text = table(("name", "time"), [("a-long-name", "9 s"), ("b", "10 s")], right=frozenset({1}))
    assert text.splitlines() == [
        "name         time",
        "-----------  ----",
        "a-long-name   9 s",
        "b            10 s",
    ]


def test_rows_of_different_lengths_are_a_mistake_of_the_caller() -> None:
    assert aligned([]) == []
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        aligned([("a", "b"), ("c",)])
