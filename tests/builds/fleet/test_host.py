"""A host: what its builds see, what it keeps and gives back, and what it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.engines.contract import Failed, Output, Started
from feedstock_tools.builds.fleet.carrying.link import Link, Task
from feedstock_tools.builds.fleet.host import settings
from feedstock_tools.builds.fleet.host.builds import Builds
from feedstock_tools.builds.fleet.host.settings import SETTINGS, read_settings
from feedstock_tools.builds.fleet.host.spool import append, caches_of
from feedstock_tools.builds.fleet.orders.compiling import Files, compile_order, parcels_of
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.fleet.results.events import Finished, HostEvent, events_of
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.layout import SEAL
from tests.support.feedstocks import STUBBORN, TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
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


def _prepared(feedstock: TinyFeedstock) -> tuple[Files, Order]:
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    parcels, row = parcels_of(workspace, planned), planned.todo[0]
    engine = workspace.engines.engine_for(row.configuration, row.platform)
    names = [output.name for output in row.wanted.missing]
    choice = planned.channels[row.configuration]
    order = compile_order(parcels, row, Running("", Share((), 0, 1)), engine, choice, names, [])
    return Files(parcels, feedstock.artifacts), order


@contextmanager
def _given(fleet: Fleet, order: Order, files: Files) -> Iterator[Link]:
    """A link to the fleet whose host has an order and the files for it."""
    with fleet.link() as link:
        link.submit(Task(order, {"rows": 1.0}, 0))
        _provide(link, order, files)
        yield link


def _provide(link: Link, order: Order, files: Files) -> list[str]:
    sent: list[str] = []
    while lacks := link.ask("h1", "lacks", {"bundles": order.bundles, "files": []})["lacks"]:
        for content in lacks:
            source = files.source(content, order)
            assert source is not None
            link.put("h1", content, source)
        sent += lacks
    return sent


def _begun(fleet: Fleet, feedstock: TinyFeedstock) -> Order:
    """An attempt at a row of which the script has begun; the client is gone."""
    files, order = _prepared(feedstock)
    with _given(fleet, order, files):
        wait_until(lambda: any(isinstance(event, Output) for event in _events(fleet, order)), 120)
    return order


def _is_placed(link: Link, order: Order) -> bool:
    return bool(link.tasks[order.key].host)


def _events(fleet: Fleet, order: Order) -> list[HostEvent]:
    file = fleet.local.home_of("h1") / "work" / "attempts" / order.key / "events"
    content = file.read_bytes() if file.exists() else b""
    return list(events_of(content.rpartition(b"\n")[0]))


def _end(fleet: Fleet, order: Order) -> Finished:
    def found() -> list[Finished]:
        return [event for event in _events(fleet, order) if isinstance(event, Finished)]

    wait_until(found, 120)
    (end,) = found()
    return end


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        ([("a", True), ("b", True), ("c", True)], ["rows of a, b, c have failed here one after the other"]),
        ([("a", True), ("a", True), ("a", True), ("b", True)], []),  # it may be the feedstocks
        ([("a", True), ("b", True), ("d", False), ("c", True)], []),
    ],
)
def test_a_host_on_which_rows_of_three_feedstocks_fail_is_set_aside(
    tmp_path: Path, feedstock: TinyFeedstock, rows: list[tuple[str, bool]], reasons: list[str]
) -> None:
    _, order = _prepared(feedstock)
    (tmp_path / SETTINGS).write_text(json.dumps({"name": "h1", "hub": "a:1", "root": str(tmp_path / "work")}))

    class Failing(Builds):
        """Builds nothing."""

        async def _process(self, folder: Path, share: Share) -> None:
            if fails[folder.name]:
                append(folder, Failed("x", "it fails", "script"))
            append(folder, Finished("built"))

        def lacks(self, bundles: object, files: object) -> list[str]:
            return []

    fails: dict[str, bool] = {}
    found: list[str] = []

    async def build() -> None:
        builds = Failing(read_settings(tmp_path))

        async def set_aside(reason: str) -> None:
            found.append(reason)

        builds.set_aside = set_aside
        for at, (name, is_failure) in enumerate(rows):
            each = replace(order, feedstock=f"feedstocks/{name}", again=str(at))
            fails[each.key] = is_failure
            await builds.run(each)

    asyncio.run(build())
    assert found == reasons


def test_a_host_keeps_shared_builds_until_they_are_over_or_unused_for_a_week(tmp_path: Path) -> None:
    (tmp_path / SETTINGS).write_text(json.dumps({"name": "h1", "hub": "a:1", "root": str(tmp_path / "work")}))
    folder = caches_of(tmp_path / "work").shared_builds
    for name, days, is_whole in (("over", 0, True), ("used", 6, True), ("unused", 8, True), ("broken", 8, False)):
        (folder / name).mkdir(parents=True)
        if is_whole:
            (folder / name / SEAL).touch()
        then = time.time() - days * 24 * 3600
        os.utime(folder / name, (then, then))

    async def kept() -> list[set[str]]:
        builds = Builds(read_settings(tmp_path))
        first = {*builds.kept}
        builds.unshare(["over", "../shared/used", "..", "other"])
        return [first, {*builds.kept}]

    assert asyncio.run(kept()) == [{"over", "used"}, {"used"}]
    assert [path.name for path in folder.iterdir()] == ["used"]


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
    log = (work / "attempts" / order.key / "files" / end.log).read_bytes()
    assert b"PKG_BUILD_STRING" in log
    for file in (path for path in work.rglob("*") if path.is_file() and not path.is_symlink()):
        assert b"token-that-nobody-sees" not in file.read_bytes(), file
    names = (b"SSH_AUTH_SOCK", b"PYTHONPATH", b"PYTEST_CURRENT_TEST")
    assert not [name for name in names if name in log]


def test_what_a_host_has_built_is_given_back_and_files_are_sent_once(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    files, order = _prepared(feedstock)
    with fleet.link() as link:
        assert _provide(link, order, files)
        assert _provide(link, order, files) == []
    for _ in range(2):
        with _given(fleet, order, files) as link:
            wait_until(partial(_is_placed, link, order), 120)
            assert _end(fleet, order).how == "built"
            link.release(order.key)
    starts = [event for event in _events(fleet, order) if isinstance(event, Started)]
    assert len(starts) == len(order.wanted), "a build was repeated"


def test_a_client_that_comes_back_is_told_of_a_build_that_goes_on(fleet: Fleet, endless: TinyFeedstock) -> None:
    files, order = _prepared(endless)
    with _given(fleet, order, files) as link:
        wait_until(lambda: any(isinstance(event, Output) for event in _events(fleet, order)), 120)
        begun = link.tasks[order.key]
    with fleet.link() as link:
        link.submit(Task(order, {"rows": 1.0}, 0))
        wait_until(partial(_is_placed, link, order), 60)
        again = link.tasks[order.key]
        link.stop("")
    assert (again.host, again.start, again.share) == ("h1", begun.start, begun.share)


def test_an_order_that_a_host_cannot_perform_is_broken(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    files, order = _prepared(feedstock)
    broken = replace(order, engine_version="0.0.1", again="once more")
    with _given(fleet, broken, files):
        assert "the plan is for 0.0.1" in _end(fleet, broken).reason


@pytest.mark.parametrize(
    ("operation", "arguments", "reason"),
    [
        ("run", {}, "there is no operation"),
        ("events", {}, "another form"),
        ("events", {"key": "../../x", "start": "", "offset": 0}, "no such attempt"),
        ("file", {"key": "0" * 32, "content": "order.json", "offset": 0, "size": 1}, "no such attempt"),
        ("lacks", {"bundles": ["../x"], "files": []}, "64 hexadecimal digits"),
    ],
)
def test_a_request_of_another_form_is_refused(
    fleet: Fleet, operation: str, arguments: dict[str, Any], reason: str
) -> None:
    with fleet.link() as link, pytest.raises(Refused, match=reason):
        link.ask("h1", operation, arguments)


def test_a_run_that_is_stopped_leaves_no_process(fleet: Fleet, endless: TinyFeedstock) -> None:
    order = _begun(fleet, endless)
    with fleet.link() as link:
        assert link.runs() == {"": 1}
        assert link.stop("") == 1
        assert fleet.wait_until_gone("h1", 60) < 10
        assert _end(fleet, order).how == "stopped"
        assert link.runs() == {}


def test_a_killed_worker_leaves_no_process(fleet: Fleet, endless: TinyFeedstock) -> None:
    order = _begun(fleet, endless)
    worker = fleet.local.processes["h1"]
    worker.kill()
    worker.wait()
    assert fleet.wait_until_gone("h1", 60) < 5
    assert _end(fleet, order).how == "stopped"
    fleet.local.start_host("h1")
    fleet.wait_for(1)
    with fleet.link() as link:
        link.stop("")


def test_a_host_with_a_full_disk_is_unfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "LEAST_DISK", 1 << 60)
    assert "its disk is full" in str(settings.why_unfit(tmp_path))
    monkeypatch.setattr(settings, "LEAST_DISK", 0)
    assert settings.why_unfit(tmp_path) is None
    assert "cannot be used" in str(settings.why_unfit(tmp_path / "missing"))


@pytest.mark.parametrize(
    "text", ["[]", "{}", "[" * 100_000, '{"name": "h", "hub": "h:1", "root": "/", "jobs": 1e999}', '{"cores": "x"}']
)
def test_settings_of_another_form_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / SETTINGS).write_text(text)
    with pytest.raises(InputError, match="the settings of the host are invalid"):
        read_settings(tmp_path)
