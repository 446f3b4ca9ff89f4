"""What a host may send has bounds: beyond one it fails its own rows with the reason, and the client goes on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from feedstock_tools import __version__
from feedstock_tools.builds.engines.contract import Failed, Log, Output, Started
from feedstock_tools.builds.fleet.carrying import courier, link
from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.folder import make_fleet
from feedstock_tools.builds.fleet.host import performing
from feedstock_tools.builds.fleet.host.settings import report_of
from feedstock_tools.builds.fleet.results import events
from feedstock_tools.builds.fleet.results.crew import FleetCrew
from feedstock_tools.builds.fleet.results.events import (
    Arriving,
    Damaged,
    Delivered,
    Finished,
    HostEvent,
    events_of,
    line_of,
)
from feedstock_tools.builds.fleet.results.following import Followed, Following, Place
from feedstock_tools.builds.fleet.results.quarantine import LARGEST, Rejected
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.runs.row_build import claim
from feedstock_tools.channel.properties import REAL
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.report.fleet import status_json, status_text
from tests.support.needs import needs
from tests.support.rows import made_up_row
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "a courier is a process")
REPORT: Mapping[str, Any] = {
    **{"version": __version__, "builder": "linux-64", "cores": [0, 1], "memory": 8 << 30, "jobs": 2},
    **{"platforms": ["linux-64"], "gpus": 0, "labels": [], "preempted": 0.0, "price": 0.0, "images": None},
    **{"engines": ["rattler-build"], "unfit": None, "left": None},
    "builds": {"0" * 32: {"row": "a", "cores": 1, "memory": 1, "seconds": 2.0}},
}


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "changes",
    [
        {"cores": 2},
        {"cores": None},
        {"memory": "much"},
        {"memory": float("inf")},
        {"memory": -5},
        {"memory": 10**400},
        {"cores": [0, -1]},
        {"jobs": float("nan")},
        {"price": _nested(3)},
        {"left": "x"},
        {"builds": ["a"]},
        {"builds": {"k": "a"}},
        {"builds": {"k": {"row": "a"}}},
        {"builds": {"k": {"row": "a", "cores": 1, "memory": 1, "seconds": "long"}}},
        {"damaged": "it is too large"},
    ],
)
def test_a_damaged_report_is_that_of_a_host_that_gets_nothing(changes: Mapping[str, Any]) -> None:
    assert report_of("h1", REPORT) == REPORT
    damaged = report_of("h1", {**REPORT, **changes})
    assert damaged["unfit"].startswith("its report is damaged") and "cores" not in damaged
    shown = status_text({"h1": damaged, "h2": REPORT}, {}, {}, {}).splitlines()
    assert "set aside: its report is damaged" in shown[2]
    assert shown[3].split()[:3] == ["h2", "present", "linux-64"]
    assert [each["unfit"] for each in status_json({"h1": damaged, "h2": REPORT}, {}, {}, {})["hosts"]][1] is None


@pytest.mark.parametrize("content", [[], None, "damaged", 1, {"version": []}, {"version": "0.0.1", "unfit": 7}])
def test_what_is_no_report_of_this_version_says_so(content: object) -> None:
    assert isinstance(report_of("h1", content)["unfit"], str)


def test_a_report_that_is_too_large_leaves_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    large = {"version": "x" * courier.LARGEST_REPORT}
    given = {"h1": large, "h2": REPORT, "h3": {"labels": _nested(5000)}, "h4": {"data": b"x"}}
    endless = {"builds": {"0" * 32: {"row": "a", "cores": 1, "memory": 1, "seconds": float("inf")}}}
    found = courier._reports({**given, "h5": {**REPORT, **endless}})
    assert "not JSON" in found["h5"]["damaged"]
    assert found["h2"] == REPORT
    assert "more than 256.0 KiB" in found["h1"]["damaged"]
    assert "not JSON" in found["h3"]["damaged"] and "not JSON" in found["h4"]["damaged"]
    monkeypatch.setattr(courier, "LONGEST_LINE", 1 << 16)
    many = {f"h{number}": {"version": "x" * 5000} for number in range(100)}
    together = courier._reports({**many, "h100": REPORT})
    assert together["h100"] == REPORT and len(json.dumps(together)) < courier.LONGEST_LINE
    assert sum("too large together" in report.get("damaged", "") for report in together.values()) == 94


class _Dask:
    """Dask's client, with a host that answers every request with the same value."""

    def __init__(self, found: object) -> None:
        self._found = found

    async def run(self, function: object, *arguments: object, workers: Sequence[str]) -> dict[str, object]:
        return {workers[0]: self._found}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "another form"),
        (["data"], "another form"),
        ({"data": "text"}, "another form"),
        ({"data": bytes((4 << 20) + 1)}, "more than 4.0 MiB"),
        ({"lacks": ["x" * (1 << 20)] * 16}, "more than 16.0 MiB"),
        ({"lacks": _nested(5000)}, "not JSON"),
        ({"lacks": [b"x"]}, "not JSON"),
    ],
)
def test_an_answer_that_is_too_large_or_of_another_form_is_damaged(
    found: object, reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    served = courier._Courier(cast("Any", _Dask(found)))
    served._workers = {"h1": "tls://h1"}
    ask = {"host": "h1", "operation": "events", "arguments": {}}
    fetch = {"host": "h1", "key": "k", "content": "c", "size": 1 << 40, "path": str(tmp_path / "file")}
    for number, (do, arguments) in enumerate([("ask", ask), ("fetch", fetch)]):
        asyncio.run(served._answer({"id": number, "do": do, "with": arguments}))
    for line in capsys.readouterr().out.splitlines():
        assert reason in json.loads(line)["damaged"]
    assert not (tmp_path / "file").read_bytes()


_HOSTS = json.dumps({"hosts": {"h1": REPORT, "../h2": REPORT, "h3": {**REPORT, "cores": "x"}}})
_LINES = {
    "deeply nested": '"[" * 100_000',
    "no JSON": '"{"',
    "no object": '"[1]"',
    "a number beyond all": repr(json.dumps({"to": float("inf"), "found": {}})),
    "no names": repr(json.dumps({"hosts": ["h1"]})),
    "jobs of another form": repr(json.dumps({"jobs": {"cpu": ["17"]}})),
    "a port that is a text": repr(json.dumps({"dashboard": "8787\n\x1b[2J"})),
    "a host that is a path": repr(json.dumps({"begun": {"key": "k", "host": "../x", "start": ""}})),
    "bytes that are no text": '"\\udcff"',
}


def _linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> Link:
    """A connection whose courier prints some lines, each given as an expression of Python, and then the hosts."""
    script = tmp_path / "courier.py"
    prints = "".join(f"print({line}, flush=True)\n" for line in lines)
    script.write_text(
        f"import sys\nsys.stdout.reconfigure(errors='surrogateescape')\n{prints}print({_HOSTS!r}, flush=True)\n"
        "for line in sys.stdin: pass\n"
    )
    monkeypatch.setattr(link, "worker_command", lambda *_: [sys.executable, str(script)])
    return Link(make_fleet(tmp_path / "fleet", "mine", "203.0.113.7:8786"))


@pytest.mark.parametrize("line", _LINES.values(), ids=_LINES)
def test_a_line_of_another_form_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    with _linked(tmp_path, monkeypatch, line) as connection:
        wait_until(lambda: connection.hosts, 30)
        assert connection.is_up
        assert list(connection.hosts) == ["h1", "h3"]
        assert connection.hosts["h1"] == REPORT and "damaged" in connection.hosts["h3"]
        assert (connection.jobs, connection.dashboard) == ({}, None)


def test_a_line_without_end_ends_the_courier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LONGEST_LINE", 1 << 16)
    monkeypatch.setattr(link, "_AGAIN", 0.1)
    starts = tmp_path / "starts"
    begin = f"open({str(starts)!r}, 'a').write('x') and ''"
    long = f"'x' * (1 << 20) if open({str(starts)!r}).read() == 'x' else ''"
    with _linked(tmp_path, monkeypatch, begin, repr(_HOSTS), long) as connection:
        wait_until(lambda: starts.is_file() and starts.read_text() == "xx" and connection.is_up, 30)


def test_the_row_of_a_host_whose_name_is_a_path_has_not_begun(tmp_path: Path) -> None:
    connection = Link(make_fleet(tmp_path / "fleet", "mine", "203.0.113.7:8786"))
    task = link.Task(cast("Any", SimpleNamespace(key="k")), {}, 0)
    connection.tasks["k"] = task
    begun = {"key": "k", "host": "h1", "start": "s", "cores": [0], "memory": 1, "jobs": 1}
    for damaged in ({"host": "a/../../../.."}, {"host": "a\n"}, {"memory": -1}, {"jobs": 1 << 70}, {"cores": ["x"]}):
        with suppress(TypeError, ValueError):
            connection._begun({**begun, **damaged})
        assert not task.host
    connection._begun(begun)
    assert task.host == "h1"


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([b"x" * (events.LONGEST + 1)], "more than 4.0 MiB"),
        ([b'["log", {"text": "' + b"x" * events.LONGEST, b'"}]\n'], "more than 4.0 MiB"),
        ([line_of(Log("x"))] * 200, "more than 4.9 KiB"),
        (["text"], "another form"),
        ([None], "another form"),
    ],
)
def test_events_of_an_attempt_have_a_bound(
    monkeypatch: pytest.MonkeyPatch, pieces: Sequence[object], reason: str
) -> None:
    if len(pieces) == 200:
        monkeypatch.setattr(events, "MOST", 5000)
    arriving = Arriving()
    with pytest.raises(Damaged, match=reason):
        for piece in pieces:
            list(arriving.take({"data": piece}))
    with pytest.raises(Damaged, match="it has 4194305 bytes"):
        list(events_of(b"x" * (events.LONGEST + 1)))


def test_events_come_in_pieces_that_end_anywhere() -> None:
    sent: list[HostEvent] = [Started("a"), Log("text"), Finished("built")]
    content, arriving = b"".join(line_of(each) for each in sent), Arriving()
    came: list[HostEvent] = []
    for byte in content:
        came += arriving.take({"data": bytes([byte])})
    assert (came, arriving.offset) == (sent, len(content))


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    """An attempt at a row of two outputs that is followed."""
    artifacts, row = Artifacts(tmp_path), made_up_row("row", "tiny", "other")
    row = replace(row, running=Running("h1", Share((0,), 1 << 30, 1)))
    stop, other = os.pipe()
    with Ledger(artifacts.ledger) as ledger, LogFile(artifacts.logs, "row") as log:
        place = Place(artifacts, ledger, tmp_path, "engine 1", (), "", "", built_on=REAL)
        claimed = claim(artifacts, ledger, row, REAL)
        assert claimed is not None
        with claimed.locks:
            nobody = cast("Link", None)
            yield Following(place, nobody, Followed(row, claimed, "0" * 32, stop), log, lambda _: None, lambda: False)
    os.close(stop)
    os.close(other)


@pytest.mark.parametrize("event", [Started("tiny"), Failed("tiny", "it does not work", "build")])
def test_a_host_does_not_fill_the_ledger(following: Following, event: HostEvent) -> None:
    with pytest.raises(Rejected, match="it begins 201 outputs"):
        for _ in range(1000):
            following.take(event)


def test_a_package_and_a_log_that_are_too_large_are_not_fetched(following: Following) -> None:
    """The connection is none: to ask it for anything would fail in another way."""
    of_tiny = following.wanted["tiny"]
    made = Delivered(
        output="tiny",
        identity=following.followed.row.wanted.identities["tiny"],
        file=f"{of_tiny.subdir}/tiny-1-0.conda",
        sha256="0" * 64,
        size=LARGEST + 1,
        seconds=1.0,
        started="",
        ended="",
    )
    with pytest.raises(Rejected, match="cannot be one"):
        following.take(made)
    end = Finished("built", log="0" * 64, log_size=following.followed.row.at.log_limit + (2 << 20))
    following.take(end)
    before = following.log.path.read_bytes()
    FleetCrew._replace_log(cast("FleetCrew", SimpleNamespace(_link=None)), following)
    assert following.log.path.read_bytes() == before
    following.finished = replace(end, log_size=3)
    with pytest.raises(AttributeError):
        FleetCrew._replace_log(cast("FleetCrew", SimpleNamespace(_link=None)), following)


def test_of_a_flood_a_host_adds_no_more_to_the_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no honest build exceeds what a client takes."""
    monkeypatch.setattr(performing, "MOST_OUTPUT", 100)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        report = performing._Report(tmp_path, tmp_path, Artifacts(tmp_path), ledger)
        for number in range(9):
            report.watch(Output(f"line {number}\n".encode() * 9))
        report.watch(Log("the end"))
    first, said, last, end = events_of((tmp_path / "events").read_bytes())
    assert isinstance(first, Output) and first.content.startswith(b"line 0")
    assert isinstance(said, Log) and "of output are in the log file only" in said.text
    assert isinstance(last, Output) and b"line 8" in last.content and end == Log("the end")
