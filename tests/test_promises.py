"""Every promise on untrusted input names the tests that hold it, and these tests exist."""

from __future__ import annotations

import re
from functools import cache

import pytest

from feedstock_tools import reading
from feedstock_tools.bounds.limits import READING, SOLVING
from feedstock_tools.builds.fleet.carrying import courier
from feedstock_tools.builds.fleet.results import events, following, quarantine
from feedstock_tools.builds.ledger import database
from feedstock_tools.builds.publish import parts
from feedstock_tools.channel import fetching, metadata, package_index, repodata
from feedstock_tools.channel.packages import reading as package_reading
from feedstock_tools.gpu_code import archives, code
from feedstock_tools.recipe import v1_engine
from feedstock_tools.recipe.v0 import jinja, meta, text
from feedstock_tools.recipe.v1 import templates
from feedstock_tools.recipe.v1 import variants as variants_v1
from feedstock_tools.rerender.smithy import readme
from feedstock_tools.variants import model as variant_model
from feedstock_tools.variants import selectors
from feedstock_tools.yaml_reading import nodes
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


def row_of(promise: str) -> str:
    """The first row of the page that begins with some words."""
    return next(row for row in promises() if row.split("|")[1].strip().startswith(promise))


def _mib(size: float) -> str:
    return f"{size / (1 << 30):g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):g} MiB"


#: Row of the page → what it says of the limits in the code.
LIMITS = {
    "what a host of a fleet sends": (
        f"a report {courier.LARGEST_REPORT >> 10} KiB",
        f"an answer {_mib(courier._PART)} of a file and {_mib(courier.LARGEST_ANSWER)} of JSON",
        f"an event {_mib(events.LONGEST)}; of an attempt {_mib(events.MOST)} of events",
        f"{following._MOST_BEGUN} beginnings",
        f"a package {_mib(quarantine.LARGEST)}; a process of {_mib(courier._MEMORY)}",
    ),
    "a file of a feedstock or pinning": (
        f"{reading.LARGEST_FILE >> 10} KiB of UTF-8",
        f"configurations {reading.LARGEST_SETTINGS >> 10} KiB",
        f"build scripts {_mib(reading.LARGEST_SCRIPT)}",
    ),
    "YAML": (
        f"{nodes._DEEPEST} levels",
        f"{nodes._LARGEST_EXPANSION:,} values",
        f"{nodes._MOST_MERGED:,} keys",
    ),
    "a file with selectors": (
        f"{selectors._MOST_LINES:,} lines of {selectors._LONGEST_LINE:,} characters",
        f"selectors of {selectors._LONGEST_SELECTOR:,}",
    ),
    "a `meta.yaml`": (
        f"{text._MOST_LINES:,} lines",
        f"{text._MOST_SELECTORS} different selectors",
        f"{jinja._MOST_TEMPLATES:,} templates",
        f"{meta._MOST_OUTPUTS} outputs",
        f"{readme._LONGEST_ABOUT >> 10} KiB of `about`",
    ),
    "a template": (f"{jinja._MOST_STEPS:,} steps", f"{jinja._LARGEST_TOTAL // 10**6} million for all values"),
    "a `recipe.yaml`": (
        f"{v1_engine._MOST_LINES:,} lines",
        f"templates of {templates._LONGEST:,} characters and {templates._DEEPEST} levels",
    ),
    "variants": (f"{variant_model._LARGEST_GROUP} keys", f"{variants_v1.MOST_VARIANTS:,} renderings"),
    "a pinning from a channel": (_mib(fetching._MOST_BYTES), f"{fetching._MOST_FILES:,} files"),
    "a ledger": (
        f"{database._MOST_PACKAGES:,} packages of a build",
        f"{_mib(parts._LARGEST_LEDGER)}, {parts._MOST_RECORDS:,} records",
    ),
    "a package": (
        f"documents of {_mib(package_reading.LARGEST_DOCUMENT)}",
        f"{_mib(package_reading._UNPACKED_BASE)} and {package_reading._UNPACKED_TIMES} times its own size",
        "{info:,} entries of metadata and {pkg:,} files".format(**package_reading.MOST_MEMBERS),
        f"{package_reading._FILES_BASE:,} files and one for each {package_reading._BYTES_OF_A_FILE} bytes",
    ),
    "an archive that is searched": (
        f"{archives._MOST_FILES:,} files",
        f"{_mib(archives._XZ_MEMORY)} of memory",
        f"names of {_mib(archives._LONGEST_NAME)}",
    ),
    "GPU code in a file": (f"{code._MOST_STEPS:,} pieces",),
    "repodata": (
        f"{metadata._MOST_TEXTS:,} items",
        f"repodata on this machine {_mib(repodata._LARGEST_REPODATA)}",
        f"lists of run exports {_mib(repodata._LARGEST_LIST)}",
    ),
    "memory": (_mib(READING.step_memory or 0), _mib(READING.memory or 0), _mib(SOLVING.memory or 0)),
    "processor time": (
        f"| {READING.step_seconds} s |",
        f"| {READING.seconds} s |",
        f"| {(SOLVING.seconds or 0) / 3600:g} h |",
    ),
    "each file that it writes": (_mib(READING.file_size or 0), _mib(SOLVING.file_size or 0)),
    "open files": (f"| {READING.open_files} |",),
    "`init` reads": (
        f"a project's page up to {package_index._LARGEST_PAGE >> 20} MB",
        f"an archive up to {package_index._LARGEST_ARCHIVE >> 20} MB",
        f"the first {package_index._LARGEST_TEXT >> 20} MB",
    ),
}


@pytest.mark.parametrize("promise", LIMITS)
def test_the_page_says_the_limits_of_the_code(promise: str) -> None:
    assert [words for words in LIMITS[promise] if words not in row_of(promise)] == []
