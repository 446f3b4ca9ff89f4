"""The number of tests that pass, compared with tests/passing.toml: collected is not run, and a skip needs a reason.

A pytest plugin, which `--held` switches on for a run of all tests.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.needs import KINDS, kind_of
from tests.support.paths import ROOT

RECORD = ROOT / "tests" / "passing.toml"


@dataclass(frozen=True)
class Record:
    """The result of a run: the number of passed tests, and of skipped ones by the kind of thing that they need."""

    passed: int
    skipped: dict[str, int]


def read_record(path: Path) -> Record:
    """The record in a file."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Record(content["passed"], dict(content["skipped"]))


def record_text(record: Record) -> str:
    """A record as the repository keeps it."""
    lines = "".join(f"{kind} = {count}\n" for kind, count in sorted(record.skipped.items()))
    return f"""\
# What a run of all tests comes to on a Linux that has what the `test` extra brings and nothing else, for a user without
# privileges (CONTRIBUTING.md). `.ci/run --record` raises the number; a run that does not reach it fails.
passed = {record.passed}

# Skipped for what such a machine does not have, by the kinds of tests/support/needs.py. They only grow by themselves.
[skipped]
{lines}"""


def renewed(known: Record, now: Record) -> Record:
    """The record after a run: the number that passes on a machine with less, where more tests are skipped."""
    kinds = {*known.skipped, *now.skipped}
    skipped = {kind: max(known.skipped.get(kind, 0), now.skipped.get(kind, 0)) for kind in kinds}
    return Record(now.passed + sum(now.skipped.values()) - sum(skipped.values()), skipped)


def short_of(known: Record, now: Record, *, same_system: bool) -> list[str]:
    """In which respects a run falls short of the record; empty if in none.

    A machine that has more things skips fewer tests. On another system any number may be skipped for that.
    """
    said = []
    total, before = now.passed + sum(now.skipped.values()), known.passed + sum(known.skipped.values())
    if total < before:
        said.append(f"{total} tests ran or were skipped, and {before} are recorded")
    for kind, count in sorted(now.skipped.items()):
        allowed = known.skipped.get(kind, 0)
        if count > allowed and (same_system or kind != "system"):
            said.append(f"{count} tests were skipped for want of {KINDS[kind]} ({kind}), and {allowed} are recorded")
    if same_system and now.passed < known.passed:
        said.append(f"{now.passed} tests passed, and {known.passed} are recorded")
    return said


class Passing:
    """Counts the tests of a run, and fails one that falls short of a record.

    Args:
        path: the file of the record.
        record: whether the run is recorded in it instead.
    """

    def __init__(self, path: Path, *, record: bool) -> None:
        self._path = path
        self._record = record
        self._passed = 0
        self._skips: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that passed in its call, or was skipped at any stage."""
        if report.passed and report.when == "call":
            self._passed += 1
        elif report.skipped and not hasattr(report, "wasxfail"):
            self._skips[_reason_of(report)] += 1

    def _now(self) -> Record:
        kinds: Counter[str] = Counter()
        for reason, count in self._skips.items():
            if (kind := kind_of(reason)) is not None:
                kinds[kind] += count
        return Record(self._passed, dict(kinds))

    def _mistakes(self) -> list[str]:
        groundless = [reason for reason in self._skips if kind_of(reason) is None]
        said = [f"a test was skipped for no reason that tests/support/needs.py has: {reason}" for reason in groundless]
        if not self._record:
            said += short_of(read_record(self._path), self._now(), same_system=sys.platform == "linux")
        return said

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Record, or fail; a run that failed for another reason keeps its status."""
        if exitstatus == pytest.ExitCode.OK and self._mistakes():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif exitstatus == pytest.ExitCode.OK and self._record:
            known = read_record(self._path) if self._path.is_file() else Record(0, {})
            self._path.write_text(record_text(renewed(known, self._now())), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how the run falls short."""
        if mistakes := self._mistakes():
            terminalreporter.section("short of tests/passing.toml", red=True)
            for mistake in mistakes:
                terminalreporter.line(mistake)


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
