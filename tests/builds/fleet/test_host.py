"""A host: orders once, leases, what its builds see, and what it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from feedstock_tools.builds.engines.contract import Output
from feedstock_tools.builds.fleet import worker
from feedstock_tools.builds.fleet.host.attempts import Attempts
from feedstock_tools.builds.fleet.host.lease import Lease, clock, renew
from feedstock_tools.builds.fleet.host.settings import SETTINGS, read_settings
from feedstock_tools.builds.fleet.host.spool import EVENTS, ORDER
from feedstock_tools.builds.fleet.orders.compiling import Delivery, Parcels, compile_order, parcels_of
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.results.events import Finished, HostEvent, events_of
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Host, Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.errors import InputError
from tests.support.feedstocks import STUBBORN, TinyFeedstock
from tests.support.fleets import LEASE, Fleet, fleet_in
from tests.support.needs import needs
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "looks at processes through /proc")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one host, whose worker has a secret in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", "token-that-nobody-sees")
        with fleet_in(tmp_path_factory.mktemp("fleet"), 1) as made:
            yield made


def _prepared(feedstock: TinyFeedstock) -> tuple[Parcels, Order]:
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    parcels, row = parcels_of(workspace, planned), planned.todo[0]
    engine = workspace.engines.engine_for(row.configuration, row.platform)
    row = replace(row, running=Running("h1", Share((0,), 1 << 30, 1)))
    names = [output.name for output in row.wanted.missing]
    return parcels, compile_order("me", parcels, row, engine, planned.channels[row.configuration], names, [])


def _begun(fleet: Fleet, feedstock: TinyFeedstock) -> Order:
    """An attempt at a row of which the script has begun."""
    parcels, order = _prepared(feedstock)
    with fleet.link() as link:
        Delivery(link, parcels, feedstock.artifacts).provide("h1", order)
        link.ask("h1", "start", {"order": order.to_json()})
    wait_until(lambda: any(isinstance(event, Output) for event in _events(fleet, order)), 60)
    return order


def _events(fleet: Fleet, order: Order) -> list[HostEvent]:
    file = fleet.local.home_of("h1") / "work" / "attempts" / order.attempt / "events"
    content = file.read_bytes() if file.exists() else b""
    return list(events_of(content.rpartition(b"\n")[0]))


def _end(fleet: Fleet, order: Order) -> Finished:
    def found() -> list[Finished]:
        return [event for event in _events(fleet, order) if isinstance(event, Finished)]

    wait_until(found, 60)
    (end,) = found()
    return end


@pytest.fixture
def endless(feedstock: TinyFeedstock) -> TinyFeedstock:
    """A feedstock whose first output never ends by itself, and ignores signals."""
    feedstock.edit("recipe/build-library.sh", "mkdir", f"echo begins\n{STUBBORN}")
    return feedstock


def test_a_build_sees_no_variable_outside_a_list(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "env; tr '\\0' '\\n' < /proc/$PPID/environ; mkdir")
    order = _begun(fleet, feedstock)
    end = _end(fleet, order)
    work = fleet.local.home_of("h1") / "work"
    log = (work / "attempts" / order.attempt / "files" / end.log).read_bytes()
    assert b"PKG_BUILD_STRING" in log
    for file in (path for path in work.rglob("*") if path.is_file() and not path.is_symlink()):
        assert b"token-that-nobody-sees" not in file.read_bytes(), file
    names = (b"SSH_AUTH_SOCK", b"PYTHONPATH", b"PYTEST_CURRENT_TEST")
    assert not [name for name in names if name in log]


def test_an_order_is_performed_once_and_by_the_same_program(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    parcels, order = _prepared(feedstock)
    with fleet.link() as link:
        Delivery(link, parcels, feedstock.artifacts).provide("h1", order)
        for changed, kind, reason in (
            (replace(order, version="0.0.1"), Refused, "the order is of 0.0.1"),
            (replace(order, attempt="../../x"), Refused, "32 hexadecimal digits"),
            (replace(order, share=Share((0,), 1 << 60, 1)), Busy, "has no room"),
            (replace(order, share=Share((99_999,), 1, 1)), Busy, "has no room"),
        ):
            with pytest.raises(Refused, match=reason) as refused:
                link.ask("h1", "start", {"order": changed.to_json()})
            assert refused.type is kind
        odd: tuple[dict[str, Any], ...] = (
            {},
            {"order": {}},
            {"order": []},
            {"order": {**order.to_json(), "run": "sh"}},
        )
        for content in odd:
            with pytest.raises(Refused, match="another form"):
                link.ask("h1", "start", content)
        link.ask("h1", "start", {"order": order.to_json()})
        with pytest.raises(Refused, match="ordered before"):
            link.ask("h1", "start", {"order": order.to_json()})
        assert _end(fleet, order).how == "built"
        link.ask("h1", "forget", {"attempt": order.attempt})
        wait_until(lambda: not (fleet.local.home_of("h1") / "work" / "attempts" / order.attempt).exists(), 30)
        with pytest.raises(Refused, match="ordered before"):
            link.ask("h1", "start", {"order": order.to_json()})
        broken = replace(order, attempt=uuid4().hex, engine_version="0.0.1")
        link.ask("h1", "start", {"order": broken.to_json()})
        assert "the plan is for 0.0.1" in _end(fleet, broken).reason


def test_a_host_reports_an_attempt_when_it_begins(tmp_path: Path) -> None:
    """Another client, after this one is killed, has to find it."""
    news, reports = asyncio.Event(), asyncio.Queue[object]()
    settings, attempts = SimpleNamespace(lease=100.0, every=100.0), SimpleNamespace(renew=lambda _: None)
    host: Any = SimpleNamespace(settings=settings, report={}, attempts=attempts, news=news, until=0.0)
    line: Any = SimpleNamespace(ask=lambda content, _: reports.put(content))
    reading: Any = SimpleNamespace(done=lambda: False)

    async def report() -> None:
        reporting = asyncio.create_task(worker._Tie(tmp_path, host)._report(line, reading))
        for _ in range(2):
            assert await asyncio.wait_for(reports.get(), 30) == {}
            news.set()
        reporting.cancel()

    asyncio.run(report())


def test_a_build_that_is_stopped_leaves_no_process(fleet: Fleet, endless: TinyFeedstock) -> None:
    order = _begun(fleet, endless)
    with fleet.link() as link:
        link.ask("h1", "stop", {"attempt": order.attempt})
    assert fleet.wait_until_gone("h1", 60) < 5
    assert _end(fleet, order).how == "stopped"


def test_a_worker_that_hangs_does_not_keep_its_build_beyond_the_lease(fleet: Fleet, endless: TinyFeedstock) -> None:
    order = _begun(fleet, endless)
    worker = fleet.local.processes["h1"]
    worker.send_signal(signal.SIGSTOP)
    try:
        assert fleet.wait_until_gone("h1", 60) < LEASE + 10
        assert _end(fleet, order).how == "lease"
    finally:
        worker.send_signal(signal.SIGCONT)
    fleet.wait_for(1)


def test_an_order_that_arrives_when_the_lease_is_over_begins_under_the_next(
    fleet: Fleet, feedstock: TinyFeedstock
) -> None:
    parcels, order = _prepared(feedstock)
    hub = fleet.local.processes["hub"]
    with fleet.link() as link:
        Delivery(link, parcels, feedstock.artifacts).provide("h1", order)
        hub.send_signal(signal.SIGSTOP)
        try:
            asking = threading.Thread(target=link.ask, args=("h1", "start", {"order": order.to_json()}))
            asking.start()
            time.sleep(LEASE + 2)  # more than the lease after the last report, which is answered with the order
        finally:
            hub.send_signal(signal.SIGCONT)
        asking.join()
        assert _end(fleet, order).how == "built"


def test_a_killed_worker_leaves_no_process_and_the_next_one_knows_the_attempt(
    fleet: Fleet, endless: TinyFeedstock
) -> None:
    order = _begun(fleet, endless)
    worker, apart = fleet.local.processes["h1"], _process_apart(fleet)
    worker.kill()
    worker.wait()
    assert fleet.wait_until_gone("h1", 60) < 5
    wait_until(lambda: not apart.exists(), 5)
    assert _end(fleet, order).how == "stopped"
    fleet.local.start_host("h1")
    fleet.wait_for(1)
    with fleet.link() as link:
        wait_until(lambda: _reported(link.listing.hosts["h1"].attempts, order), 30)


def test_the_process_that_forks_has_one_thread_and_is_started_again(fleet: Fleet, endless: TinyFeedstock) -> None:
    order = _begun(fleet, endless)
    apart = _process_apart(fleet)
    assert len(list((apart / "task").iterdir())) == 1, "a fork may wait forever for a lock of another thread"
    os.kill(int(apart.name), signal.SIGKILL)
    assert fleet.wait_until_gone("h1", 60) < 5
    assert _end(fleet, order).how == "stopped"
    again = _begun(fleet, endless)
    assert _process_apart(fleet) != apart
    with fleet.link() as link:
        link.ask("h1", "stop", {"attempt": again.attempt})
    fleet.wait_until_gone("h1", 60)


def _process_apart(fleet: Fleet) -> Path:
    """The process of a host that forks its attempts, in /proc."""
    worker = fleet.local.processes["h1"].pid
    (child,) = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    return Path("/proc", child)


def _reported(attempts: list[Mapping[str, Any]], order: Order) -> bool:
    return any(each["attempt"] == order.attempt and not each["runs"] for each in attempts)


@contextmanager
def _restarted(root: Path) -> Iterator[Attempts]:
    """The attempts of a host whose worker starts."""
    attempts = Attempts(root, Host("h1", Capacity((0,), 1 << 30), 1))
    try:
        yield attempts
    finally:
        attempts.end_all()


def test_a_host_that_starts_removes_attempts_whose_order_it_cannot_read(
    tmp_path: Path, feedstock: TinyFeedstock
) -> None:
    _, order = _prepared(feedstock)
    whole = order.to_json()
    contents = {
        "missing": None,
        "cut off": "{",
        "no object": '"order"',
        "of another version": json.dumps({**whole, "added": 1}),
        "a row of another form": json.dumps({**whole, "row": {"rows": []}}),
        "a share of another form": json.dumps({**whole, "share": {"cores": 1}}),
        "whole": json.dumps(whole),
    }
    names = {f"{number:032x}": content for number, content in enumerate(contents.values())}
    for name, content in names.items():
        folder = tmp_path / "attempts" / name
        folder.mkdir(parents=True)
        if content is not None:
            (folder / ORDER).write_text(content)
    *damaged, kept = names
    (tmp_path / "attempts" / kept / EVENTS).write_text("damaged\n")
    with _restarted(tmp_path) as attempts:
        assert [each["attempt"] for each in attempts.report()] == [kept]
        assert [path.name for path in (tmp_path / "attempts").iterdir()] == [kept]
        for name in damaged:
            with pytest.raises(Refused, match="ordered before"):
                attempts.start({**whole, "attempt": name}, clock() + 100)


def test_a_lease_is_over_after_its_time_or_without_a_file(tmp_path: Path) -> None:
    assert Lease(tmp_path).is_over()
    renew(tmp_path, clock() + 100)
    assert not Lease(tmp_path).is_over()
    renew(tmp_path, clock() + 0.3)
    lease = Lease(tmp_path)
    assert not lease.is_over()
    time.sleep(0.6)
    assert lease.is_over()
    renew(tmp_path, clock() + 100)
    assert lease.is_over(), "what has ended does not begin again"


@pytest.mark.parametrize(
    "text", ["[]", "{}", "[" * 100_000, '{"name": "h", "hub": "h:1", "root": "/", "jobs": 1e999}', '{"cores": "x"}']
)
def test_settings_of_another_form_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / SETTINGS).write_text(text)
    with pytest.raises(InputError, match="the settings of the host are invalid"):
        read_settings(tmp_path)
