"""Who may do what in a fleet: certificates, signatures, and messages that hold nothing but plain values."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
from distributed.protocol import dumps, loads
from distributed.protocol.serialize import ToPickle

from feedstock_tools.builds.fleet.carrying.lines import Line
from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.carrying.transport import Closed, Connection, dial, open_listener
from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet
from feedstock_tools.builds.fleet.trust.certificates import client_context, hub_context
from feedstock_tools.builds.fleet.trust.signing import Refused, public_key, sign, signing_key, verified
from feedstock_tools.errors import InputError, WorkError
from tests.support.fleets import Fleet, fleet_in
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one host."""
    with fleet_in(tmp_path_factory.mktemp("fleet"), 1) as made:
        yield made


@pytest.fixture
def other(tmp_path: Path, fleet: Fleet) -> FleetFolder:
    """Another fleet, whose client takes the hub of the first for its own."""
    return make_fleet(tmp_path / "other", "other", fleet.local.fleet.hub)


def test_private_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    made = make_fleet(tmp_path / "fleets" / "mine", "mine", "203.0.113.7:8786")
    add_host(made, "h1", {"root": "/var/lib/feedstock-tools"})
    files = [path for path in made.path.rglob("*") if path.is_file()]
    assert len(files) == 15
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in files} == {0o700}
    given = {path.name for path in made.for_host("h1").iterdir()}
    assert given == {"authority.crt", "own.crt", "own.key", "orders.pub", "host.json"}
    with pytest.raises(InputError, match="there is a fleet in this folder already"):
        make_fleet(made.path, "mine", "203.0.113.7:8786")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-rf", "x" * 64, "a\nb"])
def test_a_name_must_do_in_paths_and_certificates(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name"):
        make_fleet(tmp_path / "fleet", name, "203.0.113.7:8786")


def _refused(fleet: FleetFolder) -> None:
    with pytest.raises(WorkError, match="cannot be reached"), Link(fleet):
        pass


def test_another_fleets_certificate_is_refused(other: FleetFolder, fleet: Fleet) -> None:
    _refused(other)
    fleet.wait_for(1)


def test_plain_bytes_are_refused(fleet: Fleet) -> None:
    host, _, port = fleet.local.fleet.hub.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as made:
        made.sendall(b"GET / HTTP/1.0\r\n\r\n")
        made.settimeout(30)
        with suppress(ConnectionResetError):
            assert b"200" not in made.recv(100)
    fleet.wait_for(1)


def test_a_hosts_certificate_is_refused_as_a_clients(fleet: Fleet, other: FleetFolder, tmp_path: Path) -> None:
    folder = tmp_path / "as-client"
    shutil.copytree(fleet.local.fleet.for_host("h1"), folder)
    shutil.copyfile(other.path / "orders.key", folder / "orders.key")
    _refused(replace(fleet.local.fleet, path=folder))
    fleet.wait_for(1)


def test_a_hosts_certificate_is_refused_as_the_hubs(fleet: Fleet) -> None:
    async def check() -> None:
        listener = await open_listener("127.0.0.1:0", hub_context(fleet.local.fleet.for_host("h1")), _silent)
        with pytest.raises(Closed, match=r"(?i)certificate"):
            await dial("{}:{}".format(*listener.get_host_port()), client_context(fleet.local.fleet.path), 60)
        listener.stop()

    asyncio.run(check())


def test_a_host_performs_only_what_its_client_has_signed(fleet: Fleet, other: FleetFolder, tmp_path: Path) -> None:
    folder = tmp_path / "stolen"
    shutil.copytree(fleet.local.fleet.path, folder)
    shutil.copyfile(other.path / "orders.key", folder / "orders.key")
    with Link(replace(fleet.local.fleet, path=folder)) as link, pytest.raises(Refused, match="did not sign"):
        link.ask("h1", "stop", {"attempt": "0" * 32})
    with fleet.link() as link, pytest.raises(Refused, match="no such attempt"):
        link.ask("h1", "stop", {"attempt": "0" * 32})


def test_a_request_is_for_one_host_and_one_form(other: FleetFolder) -> None:
    key = signing_key(other.path)
    public = public_key(other.path)
    signed = sign(key, "h1", "stop", {"attempt": "a"})
    assert verified(public, "h1", signed.text, signed.signature) == ("stop", {"attempt": "a"})
    with pytest.raises(Refused, match="for another host"):
        verified(public, "h2", signed.text, signed.signature)
    changed = signed.text.replace(b"stop", b"drop")
    with pytest.raises(Refused, match="did not sign"):
        verified(public, "h1", changed, signed.signature)
    for text in (b"", b"[]", b'{"host": "h1"}', b"[" * 10_000, b'{"host": "h1", "operation": 1, "arguments": 2}'):
        with pytest.raises(Refused, match="not a request"):
            verified(public, "h1", text, key.sign(text))
    with pytest.raises(Refused, match="not a signed request"):
        verified(public, "h1", "text", signed.signature)


class _Evil:
    """An object whose unpickling makes a folder."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._place),)


async def _silent(connection: Connection) -> None:
    await asyncio.sleep(60)


async def _first_read(fleet: FleetFolder, content: bytes) -> Any:
    """What a client reads of a hub that sends these bytes."""

    async def serve(connection: Connection) -> None:
        await connection.stream.write(content)
        await asyncio.sleep(60)

    listener = await open_listener("127.0.0.1:0", hub_context(fleet.for_hub), serve)
    connection = await dial("{}:{}".format(*listener.get_host_port()), client_context(fleet.path), 10)
    try:
        return await asyncio.wait_for(connection.read(), 10)
    finally:
        connection.abort()
        listener.stop()


def _framed(content: bytes) -> bytes:
    return struct.pack("!I", len(content)) + content


def test_an_evil_pickle_runs_nothing(other: FleetFolder, tmp_path: Path) -> None:
    frames = dumps({"x": ToPickle(_Evil(tmp_path / "ran"))})
    for content in (b"".join(frames), *frames):
        read = None
        try:
            read = asyncio.run(_first_read(other, _framed(bytes(content))))
        except Closed:
            continue
        assert not isinstance(read, _Evil)
    assert not (tmp_path / "ran").exists()


def test_dasks_own_reader_would_run_it(tmp_path: Path) -> None:
    """Once this fails, Dask's reader may serve too (docs/fleet.md)."""
    frames = dumps({"x": ToPickle(_Evil(tmp_path / "ran"))})
    loads([bytes(frame) for frame in frames], deserialize=False, deserializers=["msgpack", "error"])
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("!I", 1 << 30),
        _framed(b"\xc1"),
        _framed(msgpack.packb(msgpack.ExtType(5, b"x"))),
        _framed(msgpack.packb({1: 2})),
        _framed(b""),
    ],
    ids=["too large", "damaged", "extension", "keys", "empty"],
)
def test_a_message_that_is_not_plain_ends_the_connection(other: FleetFolder, content: bytes) -> None:
    with pytest.raises(Closed):
        asyncio.run(_first_read(other, content))


def test_a_host_that_sends_anything_else_than_reports_harms_only_itself(fleet: Fleet) -> None:
    """A second machine with the certificate of `h1`."""

    async def send(message: object) -> None:
        context = client_context(fleet.local.fleet.for_host("h1"))
        connection = await dial(fleet.local.fleet.hub, context, 10)
        await connection.write(message)
        await asyncio.sleep(0.2)
        connection.abort()

    async def ask(question: dict[str, Any]) -> Any:
        context = client_context(fleet.local.fleet.for_host("h1"))
        connection = await dial(fleet.local.fleet.hub, context, 10)
        line = Line(connection)
        reading = asyncio.create_task(line.run())
        try:
            return await line.ask(question, 10)
        finally:
            connection.abort()
            reading.cancel()

    odd: tuple[object, ...] = ([], "text", {"id": "x"}, {"id": 1, "ask": 2}, {"id": 7, "answer": {}}, {"ask": {}})
    for message in odd:
        asyncio.run(send(message))
    assert asyncio.run(ask({"operation": "hosts"})) == {}
    assert asyncio.run(ask({"operation": "carry", "host": "h1", "text": b"", "signature": b""})) == {}
    with fleet.link() as link:
        wait_until(lambda: link.listing.hosts["h1"].is_present and "cores" in link.listing.hosts["h1"].report, 60)
