"""The worker of a host: it connects to the hub of its fleet and performs the orders that the fleet's client has signed.

    python -m feedstock_tools.builds.fleet.worker FOLDER [ROOT]

It listens nowhere. Its builds end with it, and when it has not heard of the hub for as long as their lease. As a job of
a cluster it ends when nothing has been built for a while, and reports how long its allocation lasts.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.carrying.lines import Line
from feedstock_tools.builds.fleet.carrying.transport import PART, Closed, dial
from feedstock_tools.builds.fleet.host.attempts import Attempts
from feedstock_tools.builds.fleet.host.lease import clock
from feedstock_tools.builds.fleet.host.settings import HostSettings, read_settings
from feedstock_tools.builds.fleet.host.store import Store
from feedstock_tools.builds.fleet.trust.certificates import client_context
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused, public_key, verified
from feedstock_tools.errors import FeedstockError
from feedstock_tools.files.temporary import remove

#: How long a request for more events waits for them, in seconds, and how often it looks.
_PATIENCE, _PAUSE = 2.0, 0.02
#: The longest that the hub may take to answer, and pauses between attempts to reach it, in seconds.
_ANSWERS_WITHIN = 10.0
_AGAIN = 1.0
_MOST_EVENTS = 512 << 10
#: What must be left of a lease for an attempt to begin, in seconds: less than remains between two reports.
_SHORTEST = 1.0
#: How often a worker that ends when it is idle looks whether it is, in seconds.
_LOOK = 1.0


class _Host:
    """The operations that a client may ask for, by name."""

    def __init__(self, folder: Path, settings: HostSettings) -> None:
        self.settings = settings
        self._key = public_key(folder)
        self._store = Store(settings.root / "store")
        self._store.remove_unused()
        self.attempts = Attempts(settings.root, settings.host, after_build=settings.after_build)
        self.until = 0.0
        #: Set when an attempt begins: the hub hears of it at once, for the next client if this one is killed.
        self.news = asyncio.Event()
        self._began = self._busy = clock()
        self._operations: Mapping[str, Callable[[dict[str, Any], bytes], Mapping[str, Any]]] = {
            "lacks": self._lacks,
            "put": self._put,
            "start": self._start,
            "file": self._file,
            "stop": self._stop,
            "forget": self._forget,
        }

    @property
    def report(self) -> dict[str, Any]:
        """What it is and does now."""
        allocation = self.settings.host.left
        left = None if allocation is None else max(0.0, allocation - (clock() - self._began))
        return {**self.settings.report, "version": __version__, "left": left, "attempts": self.attempts.report()}

    async def wait_until_idle(self) -> None:
        """Wait until nothing has run, and nothing was there to be fetched by a client, for as long as it may stay."""
        while self.settings.idle is None or clock() < self._busy + self.settings.idle:
            await asyncio.sleep(_LOOK)
            listed = self.attempts.report()
            is_cut_off = clock() > self.until
            if any(each["runs"] for each in listed) or (listed and not is_cut_off):
                self._busy = clock()

    async def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request, or why it is refused."""
        try:
            text, signature, data = question.get("text"), question.get("signature"), question.get("data", b"")
            operation, arguments = verified(self._key, self.settings.host.name, text, signature)
            if not isinstance(data, bytes):
                raise Refused("data are bytes")
            if operation == "events":
                return await self._events(arguments)
            if operation == "start":
                await self._leased()
            if operation not in self._operations:
                raise Refused(f"there is no operation {operation!r}")
            return self._operations[operation](arguments, data)
        except Refused as error:
            return {"refused": str(error), "busy": isinstance(error, Busy)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return {"refused": f"the request has another form: {error!r}"}
        except OSError as error:
            return {"refused": f"the host cannot do it: {error.strerror or error}"}

    def _lacks(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        """The hashes that must come before an order can be performed: of documents of bundles, then of files."""
        documents = self._store.missing(arguments["bundles"])
        if documents:
            return {"lacks": documents}
        bundles = [self._store.bundle(identity) for identity in arguments["bundles"]]
        contents = [entry.sha256 for bundle in bundles if bundle for entry in bundle.entries if not entry.link]
        return {"lacks": self._store.missing([*contents, *arguments["files"]])}

    def _put(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        self._store.put(arguments["content"], int(arguments["offset"]), data, int(arguments["size"]))
        return {}

    def _start(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        self.attempts.start(arguments["order"], self.until)
        self.news.set()
        return {}

    def _file(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        return {"data": self.attempts.file(arguments["attempt"], arguments["content"], int(arguments["offset"]), PART)}

    def _stop(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        self.attempts.stop(arguments["attempt"])
        return {}

    def _forget(self, arguments: dict[str, Any], data: bytes) -> Mapping[str, Any]:
        self.attempts.forget(arguments["attempt"])
        return {}

    async def _leased(self) -> None:
        """Wait for a lease under which an attempt can begin.

        What the hub has sent to a host that was cut off may arrive before the answer to the host's next report. Without
        such an answer the connection ends, and with it this.
        """
        while self.until < clock() + _SHORTEST:
            await asyncio.sleep(_PAUSE)

    async def _events(self, arguments: dict[str, Any]) -> Mapping[str, Any]:
        """The events from an offset on, as soon as there are any."""
        attempt, offset = arguments["attempt"], int(arguments["offset"])
        end = clock() + _PATIENCE
        while True:
            content, goes_on = self.attempts.read(attempt, offset, _MOST_EVENTS)
            if content or not goes_on or clock() > end:
                return {"data": content, "goes_on": goes_on}
            await asyncio.sleep(_PAUSE)


@dataclass
class _Tie:
    """The tie to the hub, renewed whenever it breaks."""

    folder: Path
    host: _Host

    async def hold(self) -> None:
        """Connect, report, and connect again; never returns."""
        context = client_context(self.folder)
        while True:
            with suppress(Closed, OSError, TimeoutError):
                connection = await dial(self.host.settings.hub, context, _ANSWERS_WITHIN)
                line = Line(connection, self.host.answer)
                reading = asyncio.create_task(line.run())
                try:
                    await self._report(line, reading)
                finally:
                    await line.end(reading)
            self.host.attempts.look()
            await asyncio.sleep(_AGAIN)

    async def _report(self, line: Line, reading: asyncio.Task[None]) -> None:
        """Report what this host is and does; each answer renews the leases, from the time of its question on."""
        settings = self.host.settings
        while not reading.done():
            self.host.news.clear()
            sent = clock()
            await line.ask(self.host.report, _ANSWERS_WITHIN)
            self.host.until = sent + settings.lease
            self.host.attempts.renew(self.host.until)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.host.news.wait(), settings.every)


async def _serve(folder: Path, settings: HostSettings) -> None:
    host = _Host(folder, settings)
    holding = asyncio.create_task(_Tie(folder, host).hold())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ends = [asyncio.create_task(stop.wait()), asyncio.create_task(host.wait_until_idle())]
    await asyncio.wait([holding, *ends], return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        holding.result()
    for task in (holding, *ends):
        task.cancel()
    host.attempts.end_all()
    if settings.temporary:
        remove(settings.root)


def main(folder: str, root: str | None = None) -> int:
    """Serve until a signal asks it to end.

    Args:
        folder: the host's certificate, and its settings.
        root: the folder for all that it does, in place of that in the settings.
    """
    try:
        settings = read_settings(Path(folder))
        if root is not None:
            settings = replace(settings, root=Path(root))
        asyncio.run(_serve(Path(folder), settings))
    except (FeedstockError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
