"""The hub of a fleet: the process that hosts and clients connect to, and that carries requests between them.

    python -m feedstock_tools.builds.fleet.hub FOLDER HOST:PORT

It performs nothing and needs no trust: hosts verify the client's signature of each request. It remembers nothing on
disk: hosts report their attempts when they connect again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.carrying.lines import Line
from feedstock_tools.builds.fleet.carrying.transport import Closed, Connection, is_cut, open_listener, peer_of
from feedstock_tools.builds.fleet.trust.certificates import hub_context
from feedstock_tools.errors import FeedstockError

#: The longest that a request may take, in seconds: hosts answer at once, or wait some seconds for more of a log.
_LONGEST = 60.0
#: A host that has been away for so long is forgotten, in seconds.
_FORGOTTEN = 24 * 3600.0
#: The same for a job of a cluster, which does not come back once its worker has ended.
_JOB_FORGOTTEN = 300.0


@dataclass
class _Known:
    """A host that has connected.

    Attributes:
        report: its last report, as it sent it.
        reported: the time of that, monotonic.
        line: to it; None without a connection.
        ended: its last connection was closed by itself or its system, not by the network.
    """

    report: Mapping[str, Any]
    reported: float
    line: Line | None = None
    ended: bool = False
    since: float = field(default_factory=time.monotonic)


class Hub:
    """The hosts and clients of a fleet that are connected."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Known] = {}
        self._began = time.monotonic()

    async def serve(self, connection: Connection) -> None:
        """Serve one connection to its end."""
        role, name = peer_of(connection)
        if role == "host":
            await self._serve_host(connection, name)
        elif role == "client":
            await self._run(Line(connection, self._answer_client))
        else:
            connection.abort()

    async def _serve_host(self, connection: Connection, name: str) -> None:
        line: Line

        async def answer(report: Mapping[str, Any]) -> Mapping[str, Any]:
            """A report, which is also the host's sign of life."""
            now = time.monotonic()
            known = self._hosts.get(name)
            if known is None or known.line is not line:
                if known is not None and known.line is not None:
                    known.line.connection.abort()  # the host has a new connection
                known = self._hosts[name] = _Known(report, now, line)
            known.report, known.reported = report, now
            return {}

        line = Line(connection, answer)
        await self._run(line)
        known = self._hosts.get(name)
        if known is not None and known.line is line:
            known.line, known.ended, known.since = None, not is_cut(connection), time.monotonic()

    async def _run(self, line: Line) -> None:
        with suppress(Closed, OSError):
            await line.run()

    async def _answer_client(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if question.get("operation") == "hosts":
            return self._listed()
        if question.get("operation") != "carry":
            return {"refused": "the hub lists hosts and carries requests, nothing else"}
        known = self._hosts.get(str(question.get("host")))
        if known is None or known.line is None:
            return {"absent": True}
        request = {key: question.get(key, b"") for key in ("text", "signature", "data")}
        try:
            return await known.line.ask(request, _LONGEST)
        except (Closed, OSError):
            return {"absent": True}

    def _listed(self) -> Mapping[str, Any]:
        now = time.monotonic()
        self._hosts = {
            name: known for name, known in self._hosts.items() if known.line or now - known.reported < _kept(known)
        }
        hosts = [
            {
                "name": name,
                "connected": known.line is not None,
                "ended": known.ended,
                "silent": now - known.reported,
                "since": now - known.since,
                "report": known.report,
            }
            for name, known in sorted(self._hosts.items())
        ]
        return {"hosts": hosts, "up": now - self._began}


def _kept(known: _Known) -> float:
    """How long a host that is away is remembered, in seconds."""
    return _JOB_FORGOTTEN if known.ended and known.report.get("left") is not None else _FORGOTTEN


async def _serve(folder: Path, address: str) -> None:
    hub = Hub()
    listener = await open_listener(address, hub_context(folder), hub.serve)
    host, port = listener.get_host_port()
    print(f"the hub listens at {host}:{port}", flush=True)  # noqa: T201 - the program's only output
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    listener.stop()


def main(folder: str, address: str) -> int:
    """Serve until a signal asks it to end."""
    try:
        asyncio.run(_serve(Path(folder), address))
    except (FeedstockError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
