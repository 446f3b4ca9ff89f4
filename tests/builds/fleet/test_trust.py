"""Who takes part in a fleet, and what a host that was taken over cannot do to a client."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from distributed.protocol import dumps
from distributed.protocol.serialize import ToPickle

from feedstock_tools.builds.fleet.carrying.link import COURIER, Link
from feedstock_tools.builds.fleet.certificates import security
from feedstock_tools.builds.fleet.folder import (
    FleetFolder,
    add_host,
    invite,
    join_fleet,
    make_fleet,
    open_fleet,
    remove_maintainer,
)
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.processes import worker_command
from tests.support.fleets import Fleet, fleet_in, started_fleet, wait_for_hosts
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one host."""
    with fleet_in(tmp_path_factory.mktemp("fleet"), 1) as made:
        yield made


@pytest.fixture
def other(tmp_path: Path, fleet: Fleet) -> FleetFolder:
    """Another fleet that says its scheduler is that of the first."""
    return make_fleet(tmp_path / "other", "local", fleet.local.fleet.hub)


def test_private_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    made = make_fleet(tmp_path / "fleets" / "mine", "mine", "203.0.113.7:8786")
    add_host(made, "h1", {"root": "/var/lib/feedstock-tools"})
    files = [path for path in made.path.rglob("*") if path.is_file()]
    assert len(files) == 12
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in files} == {0o700}
    given = {path.name for path in made.for_host("h1").iterdir()}
    assert given == {"authority.crt", "own.crt", "own.key", "host.json"}
    with pytest.raises(InputError, match="there is a fleet in this folder already"):
        make_fleet(made.path, "mine", "203.0.113.7:8786")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-rf", "x" * 64, "a\nb"])
def test_a_name_must_do_in_paths_and_certificates(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name"):
        make_fleet(tmp_path / "fleet", name, "203.0.113.7:8786")


def test_a_maintainer_is_invited_with_a_key_of_their_own_and_removed(tmp_path: Path) -> None:
    with fleet_in(tmp_path, 1) as fleet:
        mine, theirs = fleet.local.fleet, tmp_path / "theirs"
        certificate = join_fleet(theirs, "local", mine.hub, mine.path / "authority.crt")
        joined = open_fleet(theirs)
        with pytest.raises(WorkError, match="cannot be reached"), Link(joined):
            pass
        invite(mine, "anna", certificate)
        assert (theirs / "own.key").read_bytes() not in {path.read_bytes() for path in mine.path.rglob("*.key")}
        wait_for_hosts(joined, 1)
        fleet.wait_for(1)
        with pytest.raises(InputError, match="is somebody else's"):
            invite(joined, "mallory", certificate)
        with pytest.raises(InputError, match=r"there is no maintainer 'otto'.*|There are: anna"):
            remove_maintainer(mine, "otto")
        remove_maintainer(mine, "anna")
        wait_until(lambda: _is_refused(joined), 60)
        fleet.wait_for(1)


def _is_refused(fleet: FleetFolder) -> bool:
    with suppress(WorkError), Link(fleet):
        return False
    return True


def test_an_invitation_takes_a_certificate_of_a_client_alone(tmp_path: Path) -> None:
    made = make_fleet(tmp_path / "fleet", "mine", "203.0.113.7:8786")
    add_host(made, "h1", {"root": "/var/lib/feedstock-tools"})
    for path in (made.path / "authority.crt", made.for_host("h1") / "own.crt", made.path / "fleet.json"):
        with pytest.raises(InputError, match="certificate"):
            invite(made, "anna", path)


def test_another_fleets_certificate_is_refused(other: FleetFolder, fleet: Fleet) -> None:
    with pytest.raises(WorkError, match="cannot be reached"), Link(other):
        pass
    fleet.wait_for(1)


def test_plain_bytes_are_refused(fleet: Fleet) -> None:
    host, _, port = fleet.local.fleet.hub.rpartition(":")
    with socket.create_connection((host, int(port)), 5) as plain:
        plain.settimeout(10)
        with suppress(OSError):
            plain.sendall(b"\x00" * 64)
            while plain.recv(100):
                pass
    fleet.wait_for(1)


def test_missing_certificates_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"own\.crt, own\.key is missing"):
        (tmp_path / "authority.crt").touch()
        security(tmp_path, "client")


class _Evil:
    """A value whose pickle makes a folder when a client reads it; the scheduler trusts its hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"import os, sys\nif 'courier' in str(sys.orig_argv): os.mkdir({str(self.folder)!r})",)


_HOSTILE = """
import asyncio, os, sys, time
from pathlib import Path
from distributed import Worker
from feedstock_tools.builds.fleet.certificates import security
from feedstock_tools.builds.fleet.host import tasks
from tests.builds.fleet.test_trust import _Evil

folder, hub, sign = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])

async def answer(*arguments, **more):
    return {"keys": [], "data": _Evil(sign), "events": _Evil(sign)}

async def build_row(content):
    return _Evil(sign)

tasks.answer, tasks.build_row = answer, build_row

async def main():
    import pickle
    worker = await Worker(f"tls://{hub}", name="h1", resources={"rows": 1.0}, security=security(folder, "host"),
                          metrics={tasks.TOPIC: lambda worker: {"version": "x"}}, dashboard=False)
    print("joined", flush=True)
    while True:
        await asyncio.sleep(0.2)
        evil = pickle.dumps(_Evil(sign))
        worker.log_event("warn", {"message": evil, "category": evil})
        worker.log_event("print", {"args": [_Evil(sign)]})
        worker.log_event(tasks.TOPIC, _Evil(sign))

asyncio.run(main())
"""


def test_what_a_hostile_host_sends_runs_nothing_in_the_client(tmp_path: Path) -> None:
    """It answers requests and sends messages with pickles."""
    sign = tmp_path / "sign"
    with started_fleet(tmp_path, 0, {}) as fleet:
        hub = fleet.local.fleet.hub
        folder = add_host(fleet.local.fleet, "h1", {"root": str(tmp_path / "work")})
        ask = {"id": 1, "do": "ask", "with": {"host": "h1", "operation": "events", "arguments": {}}}
        with (
            subprocess.Popen(
                [sys.executable, "-c", _HOSTILE, str(folder), hub, str(sign)], stdout=subprocess.PIPE, text=True
            ) as hostile,
            subprocess.Popen(
                worker_command(COURIER, str(fleet.local.fleet.path), hub),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as client,
        ):
            try:
                assert hostile.stdout and hostile.stdout.readline() == "joined\n"
                assert client.stdin and client.stdout
                client.stdin.write(json.dumps(ask) + "\n")
                client.stdin.flush()
                assert any('"to": 1, "away"' in line for line in client.stdout)
                time.sleep(3)  # messages come five times a second
                assert client.poll() is None
                assert not sign.exists()
            finally:
                hostile.kill()
                client.kill()


_READER = """
import sys
from distributed.protocol import loads
from feedstock_tools.builds.fleet.carrying.courier import refuse_pickles

if sys.argv[1] == "guarded":
    sys.addaudithook(refuse_pickles)
loads([bytes.fromhex(frame) for frame in sys.argv[2:]])
"""


@pytest.mark.parametrize("guard", ["guarded", "courier without a guard"])
def test_a_pickle_that_names_anything_is_refused(tmp_path: Path, guard: str) -> None:
    """Dask's reader unpickles what any part of a message marks as pickled."""
    frames = [bytes(frame).hex() for frame in dumps({"op": "x", "value": ToPickle(_Evil(tmp_path / "sign"))})]
    words = [sys.executable, "-c", _READER, guard, *frames]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ("a host or the scheduler sent a pickle of builtins.exec" in run.stderr) == (guard == "guarded"), run.stderr
    assert (tmp_path / "sign").exists() == (guard != "guarded")
