"""The order of versions, as conda sorts them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from feedstock_tools.variants.versions import parse_version

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


@pytest.mark.parametrize("text", ["", "1..2", "a b", "1+2+3", "x!1", "1.2\n3", "9" * 400])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_version(text)
