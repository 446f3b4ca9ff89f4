"""Numbers, times, amounts and tables, as people write and read them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, strategies

from feedstock_tools import wording
from feedstock_tools.wording import aligned, code, fitted, html_code, markup, named, size_of, size_text, table


@pytest.mark.parametrize(
    "unseen",
    [
        *("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u2028", "\u2029", "\U000e0041"),
        *("\u034f", "\u115f", "\u180c", "\u3164", "\uffa0", "\u2800", "\ufe00", "\ufe0f", "\U0001d173", "\U000e0101"),
    ],
    ids=ascii,
)
def test_two_names_that_differ_in_what_nobody_sees_look_different(unseen: str) -> None:
    for show in (named, code, html_code, markup):
        shown = show(f"open{unseen}ssl")
        assert shown.isascii() and shown != show("openssl")


def test_a_sign_keeps_the_selector_of_its_variation() -> None:
    assert named("\u26a0\ufe0f") == "\u26a0\ufe0f"


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


def test_a_table_too_wide_for_its_terminal_loses_spare_columns_then_the_middle_of_its_cells() -> None:
    head = ("name", "builds", "where")
    rows = [
        ("linux_64_cpu", "libtorch, pytorch, pytorch-tests, pytorch-cpu", "here"),
        ("osx_64_cpu", "libtorch", "there"),
    ]
    whole = table(head, rows)
    assert table(head, rows, width=len(whole.splitlines()[1]), spare=("where",)) == whole
    fitting = table(head, rows, width=40, spare=("where",), cut="builds").splitlines()
    assert fitting[0].split() == ["name", "builds"]
    assert fitting[2] == "linux_64_cpu  libtorch, pyt… pytorch-cpu"
    assert {len(line) for line in fitting[1:3]} == {40}


def test_a_cell_is_not_cut_below_what_can_be_read() -> None:
    assert table(("a", "b"), [("x" * 30, "y" * 30)], width=4).splitlines()[2] == "xxxxxx…xxxxx  yyyyyy…yyyyy"


def test_rows_of_different_lengths_are_a_mistake_of_the_caller() -> None:
    assert aligned([]) == []
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        aligned([("a", "b"), ("c",)])


_WORDS = strategies.lists(strategies.text("ab_.'-", min_size=1, max_size=30), min_size=1, max_size=12)


@given(_WORDS, strategies.integers(20, 60), strategies.booleans())
def test_a_line_is_broken_at_blanks_only(words: list[str], width: int, cut: bool) -> None:
    lines = fitted(" ".join(words), width, cut=cut).split("\n")
    if cut:
        assert all(len(line) <= width for line in lines)
    else:
        assert " ".join(lines).split() == words


def test_a_name_that_fits_no_line_is_cut_to_what_most_of_a_line_has_left() -> None:
    assert fitted(f"change {'a' * 90}", 60, cut=True) == f"change {'a' * 26}…{'a' * 26}"
    assert fitted(f"change {'a' * 58}", 60, cut=True) == f"change\n  {'a' * 58}"


def test_a_command_in_quotes_is_not_broken_and_the_rest_stands_below_the_last_column() -> None:
    text = "linux_64  get it with 'feedstock-tools pinning fetch', or give one"
    assert fitted(text, 45, cut=False).split("\n") == [
        "linux_64  get it with",
        "          'feedstock-tools pinning fetch', or",
        "          give one",
    ]
    assert fitted("\x1b[31merror\x1b[0m: of a few words", 24, cut=True) == "\x1b[31merror\x1b[0m: of a few words"
