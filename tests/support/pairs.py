"""Pairs of the cases of two tables: enough to meet each case in several of them, or every pair where a run asks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable

#: With this variable a run of the tests takes every pair.
ALL_PAIRS = "FEEDSTOCK_TOOLS_TESTS_ALL_PAIRS"


def pairs(rows: Iterable[str], columns: Iterable[str], count: int) -> list[tuple[str, str]]:
    """Each row with `count` of the columns, which take turns.

    >>> pairs(["a", "b", "c"], ["x", "y", "z", "v"], 2)
    [('a', 'x'), ('a', 'y'), ('b', 'z'), ('b', 'v'), ('c', 'x'), ('c', 'y')]
    """
    if ALL_PAIRS in os.environ:
        return list(itertools.product(rows, columns))
    turns = itertools.cycle(columns)
    return [(row, column) for row in rows for column in itertools.islice(turns, count)]
