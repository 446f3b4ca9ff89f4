"""The server of the live page: for this machine alone, read-only, and within bounds, whoever asks."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

import pytest

from feedstock_tools.errors import WorkError
from feedstock_tools.report.live import server
from feedstock_tools.report.live.server import Answer, Site, serve
from tests.support.waiting import wait_until


class Echo:
    """Answers with the path and the query."""

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        return Answer.text(HTTPStatus.OK, f"{path} {dict(query)}")


async def _all_ended() -> None:
    """End the connections that are open still, as `asyncio.run` does."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in left:
        connection.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextmanager
def serving(site: Site) -> Iterator[int]:
    """A server of a site at a free port, which the block gets."""
    loop, opened = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    def ready(port: int) -> None:
        ports.append(port)
        opened.set()

    task = loop.create_task(serve(site, 0, ready))
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True)))
    thread.start()
    assert opened.wait(30)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.run_until_complete(_all_ended())
        loop.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server."""
    with serving(Echo()) as opened:
        yield opened


def asked(port: int, method: str = "GET", path: str = "/", **headers: str) -> http.client.HTTPResponse:
    """The answer to a request, of which the headers have names with `_` for `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def sent(port: int, content: bytes) -> bytes:
    """The answer to any bytes, up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(content)
        answer = b""
        try:
            while part := connection.recv(1 << 16):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def test_a_request_gets_its_answer_without_anything_that_another_site_could_use(port: int) -> None:
    answer = asked(port, path="/some%20page?from=3")
    assert (answer.status, answer.read()) == (200, b"/some page {'from': '3'}")
    headers = {name.lower(): value for name, value in answer.getheaders()}
    assert headers["content-security-policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not any(name.startswith("access-control-") or name in ("set-cookie", "server") for name in headers)


def test_it_listens_on_the_loopback_address_alone(port: int) -> None:
    with pytest.raises(OSError, match=r".*"):
        socket.create_connection(("127.0.0.2", port), 5)  # another address of the same machine


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
def test_its_own_names_are_answered(port: int, name: str) -> None:
    assert asked(port, Host=f"{name}:{port}").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}x", ""]
)
def test_a_name_that_a_stranger_lets_lead_here_reads_nothing(port: int, host: str) -> None:
    answer = asked(port, Host=host.format(port=port))
    assert answer.status == 421
    assert b"/" not in answer.read()


def test_a_request_without_a_host_reads_nothing(port: int) -> None:
    assert sent(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_pages_of_other_sites_read_nothing(port: int, headers: dict[str, str]) -> None:
    assert asked(port, **{name.replace("-", "_"): value for name, value in headers.items()}).status == 403


def test_a_link_on_another_page_leads_to_it(port: int) -> None:
    assert asked(port, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_only_get_and_head_are_answered(port: int, method: str) -> None:
    answer = sent(port, f"{method} / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"Allow: GET, HEAD\r\n" in answer


def test_head_gets_the_head_alone(port: int) -> None:
    answer = sent(port, f"HEAD / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"GET //evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n Host: 127.0.0.1:{port}\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    ],
)
def test_what_is_not_a_request_gets_no_page(port: int, request_: bytes) -> None:
    answer = sent(port, request_.replace(b"{port}", str(port).encode()))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"evil" not in answer


def test_a_request_without_end_is_ended(port: int) -> None:
    assert sent(port, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000)[:13] in (b"HTTP/1.1 431 ", b"")


def test_a_request_that_does_not_come_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_WITHIN", 0.2)
    with serving(Echo()) as port:
        assert sent(port, b"GET / HT") == b""


def test_more_connections_than_a_browser_needs_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with serving(Echo()) as port:
        idle = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(3)]
        wait_until(lambda: asked(port).status == 503, 30)
        for connection in idle:
            connection.close()
        wait_until(lambda: asked(port).status == 200, 30)


def test_a_port_that_is_in_use_is_named(port: int) -> None:
    with pytest.raises(WorkError, match=rf"cannot serve at port {port}: it is in use\n.*--serve 0"):
        asyncio.run(serve(Echo(), port, print))
