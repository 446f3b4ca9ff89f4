"""What a host may send: everything else stays in quarantine with the reason, and the row begins elsewhere."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.results.events import Damaged, Delivered, Finished, HostEvent, events_of, line_of
from feedstock_tools.builds.fleet.results.quarantine import Quarantine, Rejected
from feedstock_tools.builds.ledger import EnvironmentRecord, SolvedPackage
from tests.support.feedstocks import TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
from tests.support.needs import needs
from tests.support.rows import made_up_row
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "looks at processes through /proc")
SLOW = 'touch "$RECIPE_DIR/../../../../../../begun"; sleep 3; mkdir'


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet of two hosts."""
    with fleet_in(tmp_path, 2) as made:
        yield made


def _delivered(**changes: object) -> Delivered:
    made = Delivered(
        output="tiny",
        identity="identity of tiny on a channel",
        file="linux-64/tiny-1-0.conda",
        sha256="0" * 64,
        size=3,
        seconds=1.0,
        started="2026-11-22T10:00:00+00:00",
        ended="2026-11-22T10:01:00+00:00",
        environments=(EnvironmentRecord("host", (SolvedPackage("python", "3.12", "0", "linux-64", "here"),)),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def _quarantine(tmp_path: Path) -> Quarantine:
    from feedstock_tools.feedstock.layout import Artifacts

    return Quarantine(Artifacts(tmp_path), "0" * 32, "h1", made_up_row("row", "tiny", "other"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"output": "openssl"}, "'openssl' was not ordered"),
        ({"output": "other"}, "other was built under another identity"),
        ({"identity": "identity of other on a channel"}, "tiny was built under another identity"),
        ({"file": "../linux-64/tiny-1-0.conda"}, "the path of tiny is not one that it can have"),
        ({"file": "/linux-64/tiny-1-0.conda"}, "the path of tiny is not one that it can have"),
        ({"file": "linux-64/tiny-1-../../0.conda"}, "the path of tiny is not one that it can have"),
        ({"file": "linux-64/other-1-0.conda"}, "the path of tiny is not one that it can have"),
        ({"file": "noarch/tiny-1-0.conda"}, "the path of tiny is not one that it can have"),
        ({"file": "linux-64/tiny-1-0.tar.bz2"}, "the path of tiny is not one that it can have"),
    ],
)
def test_a_package_is_what_was_ordered(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    quarantine = _quarantine(tmp_path)
    row = made_up_row("row", "tiny", "other")
    wanted = {output.name: output for output in row.planned.outputs}
    assert quarantine.expected(_delivered(), wanted).name == "tiny"
    with pytest.raises(Rejected, match=reason):
        quarantine.expected(_delivered(**changes), wanted)


class _Host:
    """A host that hands over some bytes whatever the request is."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def fetch(self, host: str, key: str, content: str, size: int, path: Path, is_over: Callable[[], bool]) -> None:
        path.write_bytes(self._content)


@pytest.mark.parametrize(
    ("sent", "size", "reason"),
    [
        (b"abd", 3, "its bytes are others"),
        (b"ab", 3, "its bytes are others"),
        (b"abcd", 3, "its bytes are others"),
        (b"abc", -1, "cannot be one"),
        (b"abc", 1 << 60, "cannot be one"),
    ],
)
def test_other_bytes_than_those_of_the_hash_are_rejected(tmp_path: Path, sent: bytes, size: int, reason: str) -> None:
    quarantine = _quarantine(tmp_path)
    content = sha256(b"abc").hexdigest()
    with pytest.raises(Rejected, match=reason):
        quarantine.fetch(_Host(sent), content, size, 1000, bool)  # type: ignore[arg-type]
    with pytest.raises(Rejected, match="cannot be one"):
        quarantine.fetch(_Host(sent), "../../file", 3, 1000, bool)  # type: ignore[arg-type]
    right = _quarantine(tmp_path / "right")
    assert right.fetch(_Host(b"abc"), content, 3, 1000, bool).read_bytes() == b"abc"  # type: ignore[arg-type]


def test_events_come_back_as_they_were() -> None:
    events: list[HostEvent] = [_delivered(), Finished("built", log="0" * 64, log_size=5)]
    assert list(events_of(b"".join(line_of(event) for event in events))) == events


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[1]",
        b'["exec", {}]',
        b'["finished", {"how": 1}]',
        b'["finished", {"how": "built", "more": 1}]',
        b'["delivered", {"output": "tiny"}]',
        b'["delivered", {"environments": [{"environment": "host", "packages": [{"x": 1}]}]}]',
        b'["output", {"content": "\\ud800\\udfff", "stage": []}]',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(Damaged):
        list(events_of(line))


def test_what_a_lying_host_sends_stays_in_quarantine_and_the_rest_goes_on(
    fleet: Fleet, feedstock: TinyFeedstock
) -> None:
    """The files of a host change between the end of a build and their way back."""
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    run = fleet.start(feedstock)
    wait_until(lambda: (fleet.local.home_of("h1") / "begun").exists(), 60)
    spoilt: list[Path] = []

    def spoil() -> bool:
        for events in (fleet.local.home_of("h1") / "work" / "attempts").glob("*/events"):
            content = events.read_bytes()
            if b'"delivered"' in content and events not in spoilt:
                at = content.index(b'"identity": "') + len(b'"identity": "')
                events.write_bytes(content[:at] + b"f" * 64 + content[at + 64 :])
                spoilt.append(events)
        return bool(spoilt)

    fleet.local.processes["h1"].send_signal(signal.SIGSTOP)
    try:
        wait_until(spoil, 30)
    finally:
        fleet.local.processes["h1"].send_signal(signal.SIGCONT)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert "h1 gets nothing more in this run" in output
    assert len(feedstock.packages()) == 12
    (kept,) = (feedstock.artifacts / "quarantine").iterdir()
    reason = json.loads((kept / "reason.json").read_text())
    assert reason["host"] == "h1"
    assert "under another identity" in reason["reason"]
    assert kept.name == f"{spoilt[0].parent.name}-h1"
