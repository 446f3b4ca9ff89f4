"""The order of versions, as conda sorts them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import rattler
from hypothesis import assume, given, strategies

from feedstock_tools.versions import parse_version

#: From the documentation of conda's VersionOrder, lowest first; versions in one row are equal.
ORDERED = (
    ("0.4", "0.4.0"),
    ("0.4.1.rc",),
    ("0.4.1",),
    ("0.5a1",),
    ("0.5b3",),
    ("0.5C1",),
    ("0.5",),
    ("0.9.6",),
    ("0.960923",),
    ("1.0",),
    ("1.1dev1",),
    ("1.1_",),
    ("1.1a1",),
    ("1.1.0dev1", "1.1.dev1"),
    ("1.1.a1",),
    ("1.1.0rc1",),
    ("1.1.0", "1.1"),
    ("1.1.0post1", "1.1.post1"),
    ("1.1post1",),
    ("1996.07.12",),
    ("1!0.4.1",),
    ("1!3.1.1.6",),
    ("2!0.4.1",),
)


def test_versions_sort_as_conda_documents() -> None:
    for lower, higher in pairwise(ORDERED):
        assert parse_version(lower[0]) < parse_version(higher[0]), (lower, higher)


def test_fill_values_do_not_matter() -> None:
    for row in ORDERED:
        assert len({parse_version(row[0]) == parse_version(other) for other in row}) == 1
        assert parse_version(row[0]) == parse_version(row[-1])


PARTS = strategies.sampled_from(["0", "1", "2", "08", "10", "a", "b", "rc", "dev", "post", "alpha"])
COMPONENTS = strategies.lists(PARTS, min_size=1, max_size=3).map("".join)
MAIN = strategies.builds(str.join, strategies.sampled_from(".-_"), strategies.lists(COMPONENTS, min_size=1, max_size=4))
EPOCHS = strategies.sampled_from(["", "1!"])
ENDS = strategies.sampled_from(["", "+1", "+a.2", "_"])
VERSIONS = strategies.builds("{}{}{}".format, EPOCHS, MAIN, ENDS)


@given(VERSIONS, VERSIONS)
def test_the_order_is_that_of_the_solver(one: str, two: str) -> None:
    """Except where a `_` follows a letter at the end (see the module); conda refuses `-` and `_` in one version."""
    assume(not any(re.search(r"[a-z]_$", text) or {"-", "_"} <= set(text) for text in (one, two)))
    ours = parse_version(one), parse_version(two)
    theirs = rattler.Version(one), rattler.Version(two)
    assert (ours[0] < ours[1], ours[0] == ours[1]) == (theirs[0] < theirs[1], theirs[0] == theirs[1])


def test_a_mark_after_a_letter_sorts_as_in_conda() -> None:
    assert parse_version("1a_") > parse_version("1a")
    assert rattler.Version("1a_") < rattler.Version("1a")


@pytest.mark.parametrize(("text", "major"), [("450.80.02", 450), ("12", 12), ("1!2.3", 2), ("r91", 0)])
def test_the_major_version_is_the_first_number(text: str, major: int) -> None:
    assert parse_version(text).major == major


@pytest.mark.parametrize("text", ["", "1..2", "a b", "1+2+3", "x!1", "1.2\n3", "9" * 400])
def test_invalid_versions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_version(text)
