"""Which failures are tried again, and which are not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from feedstock_tools.builds.engines.contract import Failed
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.hosts import Capacity, Host, Limits
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.run import UNWATCHED
from feedstock_tools.builds.runs.scheduler import carry_out, retry_of
from tests.support.rows import made_up_row

NETWORK = "the network failed"
MEMORY = "it ran out of memory"


@pytest.mark.parametrize(
    ("during", "reason", "log", "because"),
    [
        ("engine", "Failed to fetch source: error sending request for url (https://example.org/x.tar.gz)", (), NETWORK),
        ("engine", "HTTP status server error (503 Service Unavailable)", (), NETWORK),
        ("engine", "Failed to download from URL: error decoding response body", (), NETWORK),
        ("engine", "Failed to download from URL: Request failed after 3 retries", (), NETWORK),
        ("engine", "HTTP status client error (404 Not Found) for url (https://example.org/503.tar.gz)", (), None),
        ("solve", "its environments cannot be solved", ("dns error: Name or service not known",), NETWORK),
        ("script", "its build script failed", ("c++: fatal error: Killed signal terminated program cc1plus",), MEMORY),
        ("script", "its build script failed", ("virtual memory exhausted: Cannot allocate memory",), MEMORY),
        ("memory", "its processes took 300 MiB, more than its limit of 200 MiB", (), MEMORY),
        ("engine", "the engine's process ended with signal 9 before it was done", (), "it was killed"),
        ("script", "its build script failed", ("tiny.c:1:1: error: unknown type name",), None),
        ("script", "its build script failed", ("curl: (6) Could not resolve host: example.org",), None),
        ("solve", "its environments cannot be solved\nno channel has 'gcc 99'", (), None),
        ("tests", "its tests failed", ("connection refused",), None),
        ("time", "it was stopped after its time limit of 10 s", (), None),
        ("engine", "wrong hash: expected 503abc", (), None),
    ],
)
def test_what_can_pass_a_second_time(during: str, reason: str, log: tuple[str, ...], because: str | None) -> None:
    again = retry_of(Failed("tiny", reason, during), log, 1)
    assert (again.because if again else None) == because


def test_the_network_is_given_time_and_a_killed_build_fewer_jobs() -> None:
    waits = [retry_of(Failed("tiny", "connection reset", "engine"), (), number) for number in (1, 2, 3)]
    assert [again.wait for again in waits if again] == [5, 15, 45]
    killed = retry_of(Failed("tiny", "out of memory", "script"), (), 1)
    assert killed is not None
    assert (killed.wait, killed.fewer_jobs) == (0, True)


class Crew:
    """One machine, whose builds end as listed: None for a row that another run has."""

    places_rows = False
    dashboard = None

    def __init__(self, ends: Sequence[Ended | None]) -> None:
        self._ends = iter(ends)

    def present_hosts(self) -> Sequence[Host]:
        return (Host("here", Capacity((0,), 1 << 30), 1),)

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        return ()

    def lost(self, heirs: Sequence[Row]) -> Sequence[Row]:
        return ()

    def is_waiting(self) -> bool:
        return False

    def signs(self) -> Iterable[tuple[str, str]]:
        return ()

    def build(self, row: Row, stop: int, watch: object) -> Ended | None:
        return next(self._ends)


def test_a_row_that_another_run_builds_before_its_next_attempt_waits_for_that(tmp_path: Path) -> None:
    killed = Ended((), (), Failed("tiny", "out of memory", "script"))
    agenda: Any = SimpleNamespace(todo=(made_up_row("row", "tiny"),))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ended = carry_out(agenda, Limits(), UNWATCHED, ledger, Crew([killed, None, Ended((), ())]))
    assert ended["row"].failed is None
