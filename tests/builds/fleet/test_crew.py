"""The crew of a fleet over a connection that answers as told: answers that are lost, ends, absences, refusals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.carrying.link import Away, HostState, Link, Listing
from feedstock_tools.builds.fleet.orders.compiling import parcels_of
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.results import crew as crews
from feedstock_tools.builds.fleet.results.crew import FleetCrew
from feedstock_tools.builds.fleet.results.events import Finished, line_of
from feedstock_tools.builds.fleet.results.following import Place
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda, agenda
from feedstock_tools.builds.plan.hosts import Capacity, Share
from feedstock_tools.builds.plan.row import Ended, Running
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.builds.runs.crew import Elsewhere
from feedstock_tools.channel.properties import REAL
from feedstock_tools.platforms import Platform
from tests.support.feedstocks import TinyFeedstock

SHARE = Share((0,), 1 << 30, 1)
ENDED = line_of(Finished("broken", "its disk is full"))


class _Fleet:
    """The connection to a fleet of one host, h1, which reports each attempt that was started, and never builds."""

    is_up = True

    def __init__(self) -> None:
        self.now = 1000.0
        self.is_connected = True
        self.attempts: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refusal: Exception | None = None
        self.on_events: Callable[[], object] = lambda: None
        self.on_pause: Callable[[], object] = lambda: None

    @property
    def listing(self) -> Listing:
        report = {
            "version": __version__,
            "lease": 6.0,
            "builder": Platform.here().subdir,
            "cores": [0, 1],
            "memory": 8 << 30,
            "jobs": 2,
            "platforms": [],
            "gpus": 0,
            "labels": [],
            "preempted": 0.0,
            "price": 0.0,
            "engines": [],
            "images": None,
            "attempts": self.attempts,
        }
        state = HostState("h1", self.is_connected, ended=False, silent=0.0, since=0.0, report=report)
        return Listing({"h1": state}, self.now, self.now)

    def ask(
        self,
        host: str,
        operation: str,
        arguments: Mapping[str, Any],
        data: bytes = b"",
        is_over: Callable[[], bool] = lambda: False,
    ) -> Mapping[str, Any]:
        self.asked.append(operation)
        if operation == "start":
            self._start(Order.from_json(json.loads(json.dumps(arguments["order"]))))
        if operation == "events":
            self.on_events()
            return {"data": ENDED[arguments["offset"] :], "goes_on": False}
        return {}

    def _start(self, order: Order) -> None:
        if not isinstance(self.refusal, Refused):
            self.attempts.append({"attempt": order.attempt, "key": order.key, "runs": True, "cores": [0], "memory": 1})
        if self.refusal is not None:
            raise self.refusal

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_pause()


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> _Fleet:
    """A fleet whose clock is that of crews."""
    made = _Fleet()
    monkeypatch.setattr(crews, "time", SimpleNamespace(monotonic=made.monotonic, sleep=made.sleep))
    return made


@pytest.fixture
def planned(feedstock: TinyFeedstock, fleet: _Fleet) -> Iterator[tuple[FleetCrew, Agenda]]:
    """A crew on the fleet for the rows of the tiny feedstock."""
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    rows = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    link = cast("Link", fleet)
    with Ledger(workspace.artifacts.ledger) as ledger:
        place = Place(workspace.artifacts, ledger, feedstock.folder, "engine 1", (), "", "", built_on=REAL)
        places = {row.configuration: place for row in rows.todo}
        yield FleetCrew(workspace, rows, link, parcels_of(workspace, rows), places, lambda _: None), rows


def _build(planned: tuple[FleetCrew, Agenda]) -> Ended | None:
    crew, rows = planned
    running = replace(rows.todo[0], running=Running("h1", SHARE))
    stop, stopping = os.pipe()
    try:
        return crew.build(running, stop, lambda _: None)
    finally:
        os.close(stop)
        os.close(stopping)


def test_an_attempt_whose_start_was_not_confirmed_is_taken_over(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet
) -> None:
    crew, rows = planned
    row = rows.todo[0].name
    fleet.refusal = Away("the answer was lost")
    fleet.on_pause = lambda: crew.returned([])  # as the run does before it hears of the loss
    with pytest.raises(Elsewhere, match="h1 did not take"):
        _build(planned)
    assert [host.capacity.cores for host in crew.hosts()] == [(1,)], "its core was given away"
    assert crew.returned([row]) == [replace(rows.todo[0], running=Running("h1", Share((0,), 1, 1)))]
    assert crew.returned([row]) == []
    built = _build(planned)
    assert built is not None
    assert built.failed is not None
    assert built.failed.reason == "its disk is full"
    crew.finish()
    assert fleet.asked == ["lacks", "lacks", "start", "events", "forget"], "the attempt was ended or begun twice"


def test_only_attempts_that_go_on_give_signs_of_life(planned: tuple[FleetCrew, Agenda], fleet: _Fleet) -> None:
    crew, rows = planned
    signs = []
    fleet.on_events = lambda: signs.append(list(crew.signs()))
    _build(planned)
    assert signs[0] == [("h1", fleet.attempts[0]["attempt"])]
    assert list(crew.signs()) == []
    asked = list(fleet.asked)
    assert crew.returned([rows.todo[0].name]) == [], "its host reports it until it has forgotten it"
    assert crew.returned([]) == []
    crew.finish()
    assert fleet.asked == asked


@pytest.mark.parametrize("meanwhile", ["builds of others", "a row of this run"])
def test_each_absence_of_a_host_is_waited_for_anew(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, meanwhile: str
) -> None:
    crew, _ = planned
    fleet.is_connected = False
    assert crew.is_waiting()
    fleet.is_connected = True
    if meanwhile == "builds of others":
        fleet.attempts = [{"attempt": "another's", "key": "another", "runs": True, "cores": [0], "memory": 1}]
        assert crew.is_waiting()
        fleet.attempts = []
    else:
        _build(planned)
    fleet.now += 3600.0
    fleet.is_connected = False
    assert crew.is_waiting()
    fleet.now += 3600.0
    assert not crew.is_waiting()


@pytest.mark.parametrize(
    ("refusal", "hosts"),
    [
        (Busy("come back later"), ["h1"]),
        (Refused("part-7 of no-room-already.patch does not follow: no room, already"), []),
    ],
)
def test_a_host_that_is_busy_is_asked_again_and_one_that_refuses_for_another_reason_is_not(
    planned: tuple[FleetCrew, Agenda], fleet: _Fleet, refusal: Refused, hosts: list[str]
) -> None:
    fleet.refusal = refusal
    with pytest.raises(Elsewhere, match="h1 refused"):
        _build(planned)
    assert [host.name for host in planned[0].hosts()] == hosts
