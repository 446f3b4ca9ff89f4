"""The order of tests for workers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.order import LONG, dealt
from tests.support.paths import ROOT


@dataclass(frozen=True)
class Made:
    """A made-up test."""

    nodeid: str
    slow: bool = False

    def get_closest_marker(self, name: str) -> bool:
        """Whether it is marked slow."""
        return self.slow and name == "slow"


def made(file: str, number: int, slow: bool = False) -> list[Made]:
    return [Made(f"{file}::test_{at}", slow and at == 1) for at in range(number)]


def test_each_worker_begins_with_files_that_take_long() -> None:
    given = [
        *made("a", 7),
        *made("long_1", 2, slow=True),
        *made("b", 6),
        *made("long_2", 3, slow=True),
        *made(LONG[0], 2),
    ]
    order = dealt(given, 2)
    assert sorted(order, key=given.index) == given
    assert [test.nodeid for test in order[:5]] == [
        f"{LONG[0]}::test_0",
        f"{LONG[0]}::test_1",
        "long_2::test_0",
        "long_2::test_1",
        "long_2::test_2",
    ]
    assert [test.nodeid for test in order[10:12]] == ["long_1::test_0", "long_1::test_1"]
    assert [test for test in order if test.nodeid[0] in "ab"] == [test for test in given if test.nodeid[0] in "ab"]


@pytest.mark.parametrize("workers", [1, 3, 4])
def test_no_test_is_lost(workers: int) -> None:
    given = [*made("long", 9, slow=True), *made("a", 2)]
    assert set(dealt(given, workers)) == set(given)


def test_files_that_take_long_are_there() -> None:
    assert [name for name in LONG if not (ROOT / name).is_file()] == []
