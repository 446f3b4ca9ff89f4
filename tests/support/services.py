"""Services that take packages over HTTP, as prefix.dev, quetz and anaconda.org do."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from feedstock_tools.channel.packages.reading import read_package
from tests.support.serving import Answers, serving


@dataclass
class Service:
    """The packages that a service received. `limit`: how many it accepts; `listing`: its repodata is up to date;
    `shown`: it gives packages to everybody; `login`: the user and password that it wants with each request."""

    url: str
    packages: dict[str, bytes] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    limit: int | None = None
    listing: bool = True
    shown: bool = True
    login: str = ""
    received: list[str] = field(default_factory=list)

    def take(self, name: str, content: bytes) -> int:
        if self.limit is not None and len(self.received) >= self.limit:
            return 403
        if name in self.packages:
            return 409
        self.packages[name] = content
        self.received.append(name)
        return 201

    def repodata(self, subdir: str, folder: Path) -> bytes | None:
        """The repodata of the uploaded packages; a channel without packages is unknown to the service."""
        entries = {}
        for name, content in self.packages.items():
            (folder / name).write_bytes(content)
            metadata = read_package(folder / name)
            if metadata.subdir == subdir:
                entries[name] = {
                    **{"name": metadata.name, "version": metadata.version, "build": metadata.build},
                    **{"build_number": metadata.build_number, "subdir": subdir, "depends": list(metadata.depends)},
                    **{"size": len(content), "sha256": sha256(content).hexdigest()},
                }
        if not self.packages or not self.listing:
            return None
        return json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": entries}).encode()


def received(asked: BaseHTTPRequestHandler) -> bytes:
    """The body of a request, in one piece or in chunks."""
    if asked.headers.get("Transfer-Encoding") != "chunked":
        return asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
    body = b""
    while length := int(asked.rfile.readline(), 16):
        body += asked.rfile.read(length)
        asked.rfile.readline()
    asked.rfile.readline()
    return body


@contextmanager
def served(kind: str, folder: Path) -> Iterator[Service]:
    """A service of a kind on loopback."""

    class Handler(Answers):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            body = received(self)
            wanted = f"Basic {b64encode(service.login.encode()).decode()}" if service.login else ""
            let_in = not wanted or self.headers["Authorization"] == wanted
            status, content = route(self, body) if let_in else (401, b"")
            self.answer(content, status)

    def route(asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if asked.path.endswith("/repodata.json"):
            found = service.repodata(asked.path.split("/")[-2], folder)
            return (200, found) if found else (404, b"")
        if asked.command == "GET" and asked.path.endswith(".conda"):
            content = service.packages.get(asked.path.rpartition("/")[2]) if service.shown else None
            return (200, content) if content else (404, b"")
        if asked.command in ("GET", "HEAD") and "repodata" in asked.path:
            return 404, b""
        return SPOKEN[kind](service, asked, body)

    with serving(Handler) as address:
        service = Service(address)
        yield service


def form(asked: BaseHTTPRequestHandler, body: bytes) -> dict[str, tuple[str | None, bytes]]:
    """The parts of a multipart form: name → file name and content."""
    message = message_from_bytes(
        f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode() + body, _class=EmailMessage, policy=default
    )
    found = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found[str(part.get_param("name", header="content-disposition"))] = (part.get_filename(), content)
    return found


def prefix(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """prefix.dev: one form with the file, whose hash is among the part's headers."""
    assert asked.path == "/api/v1/upload/mine"
    service.keys.add(asked.headers["Authorization"])
    name, content = form(asked, body)["file"]
    return service.take(str(name), content), b""


def quetz(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """quetz: the file is the body, its name and hash are in the address."""
    place, _, query = asked.path.partition("?")
    assert place.startswith("/api/channels/mine/upload/")
    assert f"sha256={sha256(body).hexdigest()}" in query
    service.keys.add(asked.headers["X-API-Key"])
    return service.take(place.rpartition("/")[2], body), b""


def anaconda(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """anaconda.org: package, release, a staged file, its upload to storage, and a commit."""
    first, _, rest = asked.path.strip("/").partition("/")
    if first == "storage":
        name = rest
        return service.take(name, form(asked, body)["file"][1]), b""
    service.keys.add(asked.headers["Authorization"])
    if first == "stage":
        name = rest.rpartition("/")[2]
        assert json.loads(body)["channels"] == ["main"]
        if name in service.packages:
            return 409, b"{}"
        if service.limit is not None and len(service.received) >= service.limit:
            return 403, b"{}"
        staged = {"post_url": f"{service.url}/storage/{name}", "form_data": {"key": name}, "dist_id": "1"}
        return 200, json.dumps(staged).encode()
    return (404 if asked.command == "GET" else 200), b"{}"


SPOKEN = {"anaconda": anaconda, "prefix": prefix, "quetz": quetz}
KEYS = {"anaconda": "ANACONDA_API_TOKEN", "prefix": "PREFIX_API_KEY", "quetz": "QUETZ_API_KEY"}
