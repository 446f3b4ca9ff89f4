"""A server of channels that wants a user and a password, or a token, and one that keeps its callers waiting."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.support.serving import Files, serving

USER = "me"
PASSWORD = "wo@rd-that-nobody-sees"  # noqa: S105
TOKEN = "tk-that-nobody-sees"  # noqa: S105
_BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@dataclass
class Guarded:
    """A running server: its host and port, and the requests that it let in and refused."""

    host: str
    let_in: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    redirect: str | None = None

    @property
    def url(self) -> str:
        """Without credentials."""
        return f"http://{self.host}"

    @property
    def with_password(self) -> str:
        """With a user and a password."""
        return f"http://{USER}:{PASSWORD.replace('@', '%40')}@{self.host}"

    @property
    def with_token(self) -> str:
        """With a token."""
        return f"{self.url}/t/{TOKEN}"


class _Handler(Files):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, server_state: Guarded, **named: Any) -> None:
        self.state = server_state
        super().__init__(*arguments, **named)

    def _lets_in(self) -> bool:
        header = self.headers.get("Authorization", "")
        self.state.headers.append(header)
        if self.state.redirect is not None:
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", self.state.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        allowed = header in (_BASIC, f"Bearer {TOKEN}")
        if self.path.startswith(f"/t/{TOKEN}/"):
            self.path = self.path.removeprefix(f"/t/{TOKEN}")
            allowed = True
        (self.state.let_in if allowed else self.state.refused).append(self.path)
        if not allowed:
            self.send_response(HTTPStatus.UNAUTHORIZED)
            self.send_header("Content-Length", "0")
            self.end_headers()
        return allowed

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        if self._lets_in():
            del self.headers["If-Modified-Since"]
            super().do_GET()

    def do_HEAD(self) -> None:  # noqa: N802 - the name that http.server calls
        if self._lets_in():
            super().do_HEAD()


@contextmanager
def guarded(folder: Path) -> Iterator[Guarded]:
    """Serve a folder of channels to those who say who they are."""
    state = Guarded("")
    with serving(partial(_Handler, server_state=state, directory=str(folder))) as address:
        state.host = address.removeprefix("http://")
        yield state
