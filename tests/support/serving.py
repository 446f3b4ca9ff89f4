"""Servers on loopback that say nothing on stderr, and end at once."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Makes what answers a request; a class of `BaseHTTPRequestHandler` does.
Handler = Callable[[Any, Any, socketserver.BaseServer], socketserver.BaseRequestHandler]


class Answers(BaseHTTPRequestHandler):
    """Answers requests without a log, each with what `respond` sends."""

    def respond(self) -> None:
        """Send the answer to a request of any method."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.respond()

    do_HEAD = do_POST = do_PATCH = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        """Send an answer; `_` in the name of a header stands for `-`."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class Files(SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def files(folder: Path) -> Handler:
    """What serves a folder."""
    return partial(Files, directory=str(folder))


def failing(status: int) -> type[Answers]:
    """What answers everything with an error."""

    class Failing(Answers):
        def respond(self) -> None:
            self.send_error(status)

    return Failing


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """The address of a server that runs until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
