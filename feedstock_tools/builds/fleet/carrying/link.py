"""The client's connection to its fleet: what hosts there are, and requests to them, for any number of threads.

A thread of its own holds the connection and takes it up again when it breaks. Several times a second it reads the list
of hosts, which decides when a host counts as lost.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from feedstock_tools.builds.fleet.carrying.lines import Line
from feedstock_tools.builds.fleet.carrying.transport import Closed, dial
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.fleet.trust.certificates import client_context
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused, sign, signing_key
from feedstock_tools.errors import WorkError

#: The pause between two readings of the list of hosts, and between two attempts to connect.
_POLL_SECONDS = 0.5
#: The longest that the hub may take to connect, and to answer a question about its hosts, in seconds.
_ANSWERS_WITHIN = 10.0
#: The longest that a request to a host may take: longer than the hub waits for the host.
_REQUEST_SECONDS = 90.0
#: How often a thread that waits for an answer checks whether its run is over.
_CHECK_SECONDS = 0.2
#: After this many connections closed without an answer, the hub is taken to reject this client.
_CLOSED_OFTEN = 3
#: How long a host whose worker ended may take to come back before its builds count as lost, in seconds.
RETURNS_WITHIN = 4.0
#: Added to the lease of a silent host: a build ends some seconds after its lease.
MARGIN = 4.0
#: A lease that a host claims counts up to this, in seconds.
_LONGEST_LEASE = 3600.0


class Away(Exception):  # noqa: N818 - it may come back
    """The hub, or the host of a request, cannot be reached now."""


@dataclass(frozen=True, slots=True)
class HostState:
    """A host as the hub knows it, with times in seconds.

    Attributes:
        silent: since its last report; `since` the last change of `connected`.
        ended: its last connection was closed by its worker or its system.
        report: as the host sent it.
    """

    name: str
    connected: bool
    ended: bool
    silent: float
    since: float
    report: Mapping[str, Any]

    @property
    def lease(self) -> float:
        """How long it goes on with builds while it is cut off."""
        found = self.report.get("lease")
        return min(_LONGEST_LEASE, float(found)) if isinstance(found, (int, float)) else _LONGEST_LEASE

    @property
    def attempts(self) -> list[Mapping[str, Any]]:
        """The attempts that it has not handed over."""
        listed = self.report.get("attempts")
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    @property
    def is_present(self) -> bool:
        """Whether it can be given work."""
        return self.connected and self.silent < max(2.0, self.lease / 2)


@dataclass(frozen=True, slots=True)
class Listing:
    """The hosts at a moment: `at` on the monotonic clock; `up` is how long the hub has been running, in seconds."""

    hosts: Mapping[str, HostState]
    at: float
    up: float

    def why_lost(self, host: str, attempt: str, begun: float, lease: float) -> str | None:
        """Why an attempt does not go on; None if it does, or may.

        Args:
            begun: when its host began it, monotonic.
            lease: of that host.
        """
        state = self.hosts.get(host)
        if state is None:
            return "its host did not come back" if self.up > lease + MARGIN else None
        if state.silent > lease + MARGIN:
            return f"its host has been cut off for {state.silent:.0f} s, longer than its lease"
        if not state.connected:
            return "the worker of its host ended" if state.ended and state.since > RETURNS_WITHIN else None
        known = any(each.get("attempt") == attempt for each in state.attempts)
        reported = self.at - state.silent
        return None if known or reported < begun + 1 else "its host does not know it any more"


class Link:
    """A connection to the hub of a fleet. Use it as a context.

    Attributes:
        sent: the bytes of requests so far, with what they carry.
    """

    def __init__(self, fleet: FleetFolder) -> None:
        """Read the keys.

        Raises:
            InputError: they are missing or damaged.
        """
        self._fleet = fleet
        self._context = client_context(fleet.path)
        self._key = signing_key(fleet.path)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._line: Line | None = None
        self._first = threading.Event()
        self._problem = "there is no answer"
        self._closed = 0
        self._listing = Listing({}, 0.0, 0.0)
        self.sent = 0

    def __enter__(self) -> Link:
        """Connect.

        Raises:
            WorkError: the hub cannot be reached, or it is not the hub of this fleet.
        """
        self._thread.start()
        self._loop.call_soon_threadsafe(self._begin)
        if not self._first.wait(_ANSWERS_WITHIN + 1) or self._line is None:
            self.close()
            hint = "Is its machine up? `feedstock-tools fleet hub` serves on it."
            raise WorkError(f"the hub of the fleet at {self._fleet.hub} cannot be reached: {self._problem}", hint=hint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        with suppress(NotYet, TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_ANSWERS_WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_ANSWERS_WITHIN)
        self._loop.close()

    @property
    def listing(self) -> Listing:
        """The hosts, as of the last moment that the hub answered."""
        return self._listing

    @property
    def is_up(self) -> bool:
        """Whether the hub answers."""
        return self._line is not None and time.monotonic() - self._listing.at < _ANSWERS_WITHIN

    def ask(
        self,
        host: str,
        operation: str,
        arguments: Mapping[str, Any],
        data: bytes = b"",
        is_over: Callable[[], bool] = lambda: False,
    ) -> Mapping[str, Any]:
        """The answer of a host to a signed request.

        Args:
            is_over: asked several times a second whether to give up.

        Raises:
            Away: the host cannot be reached now, or it is over.
            Refused: it does not do it, with the reason; `Busy` if it may do it later.
        """
        signed = sign(self._key, host, operation, arguments)
        self.sent += len(signed.text) + len(signed.signature) + len(data)
        question = {
            "operation": "carry",
            "host": host,
            "text": signed.text,
            "signature": signed.signature,
            "data": data,
        }
        future = asyncio.run_coroutine_threadsafe(self._ask(question, _REQUEST_SECONDS), self._loop)
        while True:
            try:
                answer = future.result(_CHECK_SECONDS)
                break
            except (NotYet, TimeoutError):
                if future.done() or is_over():
                    future.cancel()
                    raise Away(f"{host} does not answer") from None
            except (Closed, OSError) as error:
                raise Away(f"{host} cannot be reached: {error}") from None
        if answer.get("absent"):
            raise Away(f"{host} is not connected")
        if "refused" in answer:
            kind = Busy if answer.get("busy") is True else Refused
            raise kind(str(answer["refused"])[:2000])
        return answer

    async def _ask(self, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        if self._line is None:
            raise Closed("the hub is away")
        return await self._line.ask(question, seconds)

    def _begin(self) -> None:
        self._holding = self._loop.create_task(self._hold())

    async def _end(self) -> None:
        """End the connection and whatever waits for it."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _hold(self) -> None:
        while True:
            try:
                connection = await dial(self._fleet.hub, self._context, _ANSWERS_WITHIN)
            except (OSError, TimeoutError) as error:
                self._problem = _in_words(error)
                self._note(error)
                await asyncio.sleep(_POLL_SECONDS)
                continue
            line = Line(connection)
            reading = asyncio.create_task(line.run())
            try:
                await self._poll(line)
            except (Closed, OSError, TimeoutError) as error:
                self._problem = _in_words(error)
                self._note(error)
            finally:
                self._line = None
                await line.end(reading)
            await asyncio.sleep(_POLL_SECONDS)

    def _note(self, error: BaseException) -> None:
        """Wait no longer for a first answer of a hub that closes every connection: it is another fleet's."""
        self._closed += isinstance(error, Closed)
        if self._closed >= _CLOSED_OFTEN:
            self._first.set()

    async def _poll(self, line: Line) -> None:
        while True:
            answer = await line.ask({"operation": "hosts"}, _ANSWERS_WITHIN)
            self._listing = _listing(answer)
            self._line = line
            self._first.set()
            await asyncio.sleep(_POLL_SECONDS)


def _in_words(error: BaseException) -> str:
    """The system's reason behind an error of Dask's."""
    while (cause := error.__cause__) is not None:
        error = cause
    if isinstance(error, Closed):
        return "it closed the connection"
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error) or type(error).__name__


def _listing(answer: Mapping[str, Any]) -> Listing:
    try:
        hosts = [
            HostState(
                name=str(each["name"]),
                connected=bool(each["connected"]),
                ended=bool(each["ended"]),
                silent=float(each["silent"]),
                since=float(each["since"]),
                report=dict(each["report"]),
            )
            for each in answer["hosts"]
        ]
        return Listing({host.name: host for host in hosts}, time.monotonic(), float(answer["up"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Closed(f"the hub answers in another form: {error!r}") from error
