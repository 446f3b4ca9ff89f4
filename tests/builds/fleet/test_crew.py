"""The crew of a fleet over a connection that notes what it is given: what Dask gets, and what its answers mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.carrying.link import Away, Link, Task
from feedstock_tools.builds.fleet.host.settings import report_of
from feedstock_tools.builds.fleet.orders.compiling import parcels_of
from feedstock_tools.builds.fleet.placing import resources_for
from feedstock_tools.builds.fleet.results import crew as module
from feedstock_tools.builds.fleet.results.crew import FleetCrew
from feedstock_tools.builds.fleet.results.following import Place
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda, agenda
from feedstock_tools.builds.plan.hosts import Capacity, Host, Limits, other_than
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.builds.runs.crew import Elsewhere
from feedstock_tools.channel.properties import REAL
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform
from tests.support.feedstocks import TinyFeedstock
from tests.support.rows import made_up_row

_REPORT: Mapping[str, Any] = {
    "version": __version__,
    "builder": Platform.here().subdir,
    "cores": [0, 1],
    "memory": 8 << 30,
    "jobs": 2,
    "platforms": [Platform.here().subdir],
    "gpus": 0,
    "labels": [],
    "preempted": 0.0,
    "price": 0.0,
    "engines": ["rattler-build"],
    "images": None,
    "unfit": None,
    "builds": {},
}


class _Fleet:
    """A connection to a fleet of one host, h1, that begins nothing by itself."""

    is_up, run = True, "tiny-1"

    ask: Callable[..., Mapping[str, Any]]
    put: Callable[..., None]

    def __init__(self) -> None:
        self.hosts: dict[str, Mapping[str, Any]] = {"h1": _REPORT}
        self.tasks: dict[str, Task] = {}
        self.released: list[str] = []

    def submit(self, task: Task) -> None:
        self.tasks[task.order.key] = task

    def release(self, key: str, *, cancel: bool = False) -> None:
        del self.tasks[key]
        self.released.append(key)

    def is_gone(self, host: str) -> bool:
        return host not in self.hosts


@pytest.fixture
def fleet() -> _Fleet:
    return _Fleet()


@pytest.fixture
def planned(
    feedstock: TinyFeedstock, fleet: _Fleet, request: pytest.FixtureRequest
) -> Iterator[tuple[FleetCrew, Agenda]]:
    """A crew on the fleet for the rows of the tiny feedstock; with a parameter, each must be built on another host."""
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    rows = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    if other := getattr(request, "param", ""):
        labels = frozenset({other_than(other)})
        needs = [replace(row.wanted.needs, labels=labels) for row in rows.todo]
        todo = [
            replace(row, wanted=replace(row.wanted, needs=each)) for row, each in zip(rows.todo, needs, strict=True)
        ]
        rows = replace(rows, todo=tuple(todo))
    link = cast("Link", fleet)
    with Ledger(workspace.artifacts.ledger) as ledger:
        place = Place(workspace.artifacts, ledger, feedstock.folder, "engine 1", (), "", "", built_on=REAL)
        places = {row.configuration: place for row in rows.todo}
        limits = Limits(seconds=7200.0, log_limit=5000)
        yield FleetCrew(workspace, rows, link, parcels_of(workspace, rows), places, limits, lambda _: None), rows


def test_rows_are_given_once_in_the_order_of_the_run_and_returned_when_they_have_begun(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet
) -> None:
    crew, rows = planned
    waiting = [row.name for row in rows.todo]
    assert crew.returned(waiting) == []
    given = list(fleet.tasks.values())
    assert crew.returned(waiting) == []
    assert list(fleet.tasks.values()) == given, "a row was given twice"
    assert {(task.order.seconds, task.order.log_limit) for task in given} == {(7200.0, 5000)}
    assert [task.priority for task in given] == sorted((task.priority for task in given), reverse=True)
    made = [package for row in rows.todo for package in row.wanted.packages if row.name in _names(given)]
    assert len(made) == len(set(made)), "two rows make the same package at the same time"
    given[0].host, given[0].start = "h1", "first"
    (begun,) = crew.returned(waiting)
    assert (begun.name, begun.at.host) == (given[0].order.name, "h1")


def _names(tasks: list[Task]) -> set[str]:
    return {task.order.name for task in tasks}


def test_a_run_that_is_stopped_ends(planned: tuple[FleetCrew, Agenda], fleet: _Fleet) -> None:
    crew, rows = planned
    waiting = [row.name for row in rows.todo]
    crew.returned(waiting)
    next(iter(fleet.tasks.values())).ended = "cancelled"
    with pytest.raises(WorkError, match="the run tiny-1 was stopped"):
        crew.returned(waiting)


def test_a_host_of_another_version_gets_nothing(planned: tuple[FleetCrew, Agenda], fleet: _Fleet) -> None:
    crew, rows = planned
    fleet.hosts["h1"] = report_of("h1", {**_REPORT, "version": "0.0.1"})
    assert crew.present_hosts() == []
    assert crew.returned([row.name for row in rows.todo]) == []
    assert not fleet.tasks
    assert not crew.is_waiting()


def test_a_host_with_a_damaged_report_gets_nothing_and_the_others_go_on(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet
) -> None:
    crew, rows = planned
    fleet.hosts |= {"h0": report_of("h0", {"damaged": "it has 16.0 MiB"}), "h2": _REPORT}
    assert [host.name for host in crew.present_hosts()] == ["h1", "h2"]
    crew.returned([row.name for row in rows.todo])
    assert fleet.tasks and all(task.without == ("h0",) for task in fleet.tasks.values())


def _away(*_: object) -> Mapping[str, Any]:
    raise Away("RuntimeError: a host or the scheduler sent a pickle of os.system")


def _lacks(_: str, __: str, arguments: Mapping[str, Any], *___: object) -> Mapping[str, Any]:
    """What a host answers that lacks everything, whatever it is sent."""
    return {"lacks": arguments.get("bundles", [])[:1]}


@pytest.mark.parametrize(
    ("ask", "put", "reason"),
    [
        (
            _away,
            _away,
            "it is there and failed to answer 50 times: RuntimeError: a host or the scheduler sent a pickle",
        ),
        (_lacks, _away, "it asks for the same files again and again"),
        (_lacks, lambda *_: None, "it asks for the same files again and again"),
    ],
    ids=["it never answers", "it takes no file", "it never has enough"],
)
def test_a_host_that_stalls_its_row_is_set_aside(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, monkeypatch: pytest.MonkeyPatch, ask: Any, put: Any, reason: str
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    crew, row = _begun_on_h1(planned, fleet)
    fleet.ask, fleet.put = ask, put
    with pytest.raises(Elsewhere, match=reason):
        _build(crew, row)
    assert crew.present_hosts() == []


def test_a_host_that_goes_on_for_ever_is_set_aside(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With output or without: it has the time limit of the row, and should have ended that by itself."""
    crew, row = _begun_on_h1(planned, fleet)
    hours = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: 3600.0 * next(hours), sleep=lambda _: None)

    def ask(_: str, operation: str, *__: object) -> Mapping[str, Any]:
        return {"data": b'["log",{"text":"so far"}]\n', "goes_on": True} if operation == "events" else {"lacks": []}

    fleet.ask = ask
    monkeypatch.setattr(module, "time", clock)
    with pytest.raises(Elsewhere, match=r"it goes on after 6 h 00 min, for a time limit of 2 h 00 min"):
        _build(crew, row)
    assert crew.present_hosts() == []


def test_a_host_that_is_away_for_long_keeps_its_row(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures in its place, while it is not there or between answers, are not counted."""
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    crew, row = _begun_on_h1(planned, fleet)
    asked = 0

    def ask(*_: object) -> Mapping[str, Any]:
        nonlocal asked
        asked += 1
        fleet.is_up = not 100 <= asked < 200
        if asked % 49 and asked < 300:
            raise Away("OSError: Timed out trying to connect")
        if asked < 300:
            return {"lacks": []} if asked == 49 else {"data": b"", "goes_on": True}
        return {"data": b"", "goes_on": False}

    fleet.ask = ask
    with pytest.raises(Elsewhere, match="its process ended without a result"):
        _build(crew, row)
    assert asked >= 300
    assert [host.name for host in crew.present_hosts()] == ["h1"]


def _begun_on_h1(planned: tuple[FleetCrew, Agenda], fleet: _Fleet) -> tuple[FleetCrew, Row]:
    """A crew, and a row that the host h1 has begun."""
    crew, rows = planned
    waiting = [row.name for row in rows.todo]
    crew.returned(waiting)
    task = next(iter(fleet.tasks.values()))
    task.host, task.start = "h1", "first"
    return crew, crew.returned(waiting)[0]


def _build(crew: FleetCrew, row: Row) -> None:
    reading, writing = os.pipe()
    try:
        crew.build(row, reading, lambda _: None)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_host_that_is_set_aside_is_waited_for(planned: tuple[FleetCrew, Agenda], fleet: _Fleet) -> None:
    crew, _ = planned
    fleet.hosts["h1"] = {**_REPORT, "unfit": "its disk is full"}
    assert crew.present_hosts() == []
    assert crew.is_waiting()


@pytest.mark.parametrize(("planned", "goes_on"), [("h1", False), ("h2", True)], indirect=["planned"])
def test_a_row_for_another_host_is_waited_for_as_long_as_there_is_one(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    """Though nothing of this run is built: the other host may be busy with another one."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    crew, rows = planned
    crew.returned([row.name for row in rows.todo])
    assert fleet.tasks
    assert crew.is_waiting() == goes_on


def test_a_row_asks_for_what_it_needs_of_any_host() -> None:
    large, small = (Host(name, Capacity(tuple(range(cores)), 8 << 30), 2) for name, cores in (("l", 8), ("s", 2)))
    row = made_up_row("row", "tiny")
    equal = replace(row, wanted=replace(row.wanted, needs=replace(row.wanted.needs, cores=None, memory=None)))
    asks = resources_for(equal, [large, small])
    assert asks == {
        "rows": 1.0,
        "cores": 1.0,
        "memory": 4096.0,
        f"version {__version__}": 1.0,
        "platform linux-64": 1.0,
    }
    needs = replace(row.wanted.needs, cores=4, gpu=True, platform="linux-64", labels=frozenset({"big"}), image="i")
    asks = resources_for(replace(row, wanted=replace(row.wanted, needs=needs)), [large])
    assert {"gpus", "platform linux-64", "label big", "any image"} < asks.keys()
    assert asks["cores"] == 4.0
