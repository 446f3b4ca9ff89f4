"""A small HTTP server for one person's browser: on the loopback address, read-only, and with bounds.

Any page in that browser, and any program on this machine, can reach the port. So a request must name this server as its
host: a stranger's name that resolves to this machine (DNS rebinding) reads nothing. Nothing can be changed through it.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from feedstock_tools.errors import WorkError

#: The only address that it listens at.
ADDRESS = "127.0.0.1"
#: The names of this server in a request.
_NAMES = (ADDRESS, "localhost")
#: Connections at a time; further ones are turned away at once. A browser opens six.
MOST_CONNECTIONS = 32
#: Bytes of a request.
_LONGEST_REQUEST = 16 << 10
#: Seconds that a request may take to arrive, and an answer to be taken.
READ_WITHIN, _TAKEN_WITHIN = 10.0, 60.0
#: The policy of an answer that is not a page.
NOTHING = "default-src 'none'; sandbox"
_ALWAYS = (
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: its status, the type of its content, and the content security policy of a page."""

    status: HTTPStatus
    kind: str
    content: bytes
    policy: str = NOTHING

    @classmethod
    def text(cls, status: HTTPStatus, text: str) -> Answer:
        """A line of text."""
        return cls(status, "text/plain; charset=utf-8", text.encode())


class Site(Protocol):
    """The pages that a server has."""

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """The answer to a request; called from any thread.

        Args:
            path: decoded; it begins with `/`.
            query: the parameters, each with its last value.
        """
        ...


async def serve(site: Site, port: int, ready: Callable[[int], object]) -> None:
    """Serve until it is cancelled.

    Args:
        port: 0 for a free one.
        ready: called with the port, once it is open.

    Raises:
        WorkError: the port cannot be opened.
    """
    served = _Served(site)
    try:
        server = await asyncio.start_server(served.connected, ADDRESS, port, limit=_LONGEST_REQUEST)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        hint = "Give another one: --serve PORT, or --serve 0 for a free one."
        raise WorkError(f"cannot serve at port {port}: {reason}", hint=hint) from error
    async with server:
        served.port = server.sockets[0].getsockname()[1]
        ready(served.port)
        await server.serve_forever()


class _Served:
    """The connections of a server."""

    def __init__(self, site: Site) -> None:
        self.port = 0
        self._site = site
        self._open = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        self._open += 1
        try:
            answer, with_content = await self._answered(reader)
            async with asyncio.timeout(_TAKEN_WITHIN):
                writer.write(_head(answer) + (answer.content if with_content else b""))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the peer has gone, or waits for ever; or the server ends
        finally:
            self._open -= 1
            with suppress(OSError):
                writer.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[Answer, bool]:
        """The answer to a request, and whether its content belongs to it."""
        if self._open > MOST_CONNECTIONS:
            return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"), True
        try:
            async with asyncio.timeout(READ_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return Answer.text(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long"), True
        try:
            method, target, headers = _parsed(head)
        except ValueError:
            return Answer.text(HTTPStatus.BAD_REQUEST, "this is not a request"), True
        refusal = self._refusal(method, headers)
        if refusal is not None:
            return refusal, method != "HEAD"
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        return await asyncio.to_thread(self._site.answer, unquote(parts.path), query), method == "GET"

    def _refusal(self, method: str, headers: Mapping[str, str]) -> Answer | None:
        """Why a request is not answered; None if it is."""
        hosts = {f"{name}:{self.port}" for name in _NAMES} | (set(_NAMES) if self.port == 80 else set())
        if headers.get("host", "").lower() not in hosts:
            return Answer.text(HTTPStatus.MISDIRECTED_REQUEST, "the request is for another host")
        if "origin" in headers and headers["origin"].lower() not in {f"http://{host}" for host in hosts}:
            return Answer.text(HTTPStatus.FORBIDDEN, "pages of other sites may not ask")
        is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if is_foreign and headers.get("sec-fetch-dest") != "document":
            return Answer.text(HTTPStatus.FORBIDDEN, "pages of other sites may not ask")
        if method not in ("GET", "HEAD"):
            return Answer.text(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered")
        return None


def _parsed(head: bytes) -> tuple[str, str, dict[str, str]]:
    """The method, the target and the headers of a request, with names in lower case.

    Raises:
        ValueError: it is not a request.
    """
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ")
    if version not in ("HTTP/1.0", "HTTP/1.1") or not target.startswith("/") or target.startswith("//"):
        raise ValueError(first)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise ValueError(line)
        headers[name.lower()] = value.strip()
    return method, target, headers


def _head(answer: Answer) -> bytes:
    fields = [
        ("Content-Type", answer.kind),
        ("Content-Length", str(len(answer.content))),
        ("Content-Security-Policy", f"{answer.policy}; frame-ancestors 'none'"),
        *_ALWAYS,
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        fields.append(("Allow", "GET, HEAD"))
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("ascii")
