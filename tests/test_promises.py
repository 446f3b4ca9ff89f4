"""Every promise on untrusted input names the tests that hold it, and these tests exist."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "untrusted-input.md"
_TEST = re.compile(r"`(test_\w+)`")


@cache
def defined_tests() -> frozenset[str]:
    """The names of all test functions."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(
        name for text in texts for name in re.findall(r"^\s*(?:async )?def (test_\w+)\(", text, re.MULTILINE)
    )


def promises() -> list[str]:
    """The rows of the page's tables, without their heads."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    heads = {number - 1 for number, row in enumerate(rows) if set(row) <= set("|-: ")}
    return [row for number, row in enumerate(rows) if number not in heads and number - 1 not in heads]


@pytest.mark.parametrize("promise", promises(), ids=lambda row: row.split("|")[1].strip()[:60])
def test_a_promise_names_tests_that_exist(promise: str) -> None:
    named = set(_TEST.findall(promise.rstrip("| ").rpartition("|")[2]))
    assert named
    assert named <= defined_tests()


def test_all_tests_that_the_page_names_exist() -> None:
    named = set(_TEST.findall(PAGE.read_text(encoding="utf-8")))
    assert len(named) > 40
    assert named - defined_tests() == set()
