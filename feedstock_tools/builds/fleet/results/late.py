"""Results that come too late: an attempt ended on a host that was away, and its row was built elsewhere meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from feedstock_tools.builds.fleet.carrying.link import Away, Link
from feedstock_tools.builds.fleet.results.events import Damaged, Delivered, HostEvent, events_of
from feedstock_tools.builds.fleet.results.following import Place
from feedstock_tools.builds.fleet.results.quarantine import Quarantine
from feedstock_tools.builds.fleet.trust.signing import Refused
from feedstock_tools.builds.ledger import BuildRecord, now
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts

#: Bytes of all events of an attempt.
_LARGEST = 64 << 20
_PATIENCE = 30.0
_REASON = "superseded: its host was away, and the output was built elsewhere meanwhile"


class LateResults:
    """Records late results as superseded, and lets their hosts forget them."""

    def __init__(self, link: Link, artifacts: Artifacts, say: Callable[[str], object]) -> None:
        self._link = link
        self._artifacts = artifacts
        self._say = say
        self._threads: list[threading.Thread] = []

    def settle(self, host: str, name: str, row: Row, place: Place | None) -> None:
        """Begin to settle an attempt.

        Args:
            name: of the attempt.
            place: of the row's configuration; None if nothing of it is recorded.
        """
        thread = threading.Thread(target=self._settle, args=(host, name, row, place), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def finish(self) -> None:
        """Wait until all of them are settled, or cannot be now."""
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _settle(self, host: str, name: str, row: Row, place: Place | None) -> None:
        with suppress(Away, Refused, Damaged, WorkError):
            made = [event for event in self._events(host, name) if isinstance(event, Delivered)]
            for event in made:
                if place is not None and event.output in row.wanted.identities:
                    self._record_late(place, host, name, row, event)
                quarantine = Quarantine(self._artifacts, name, host, row)
                quarantine.keep(event.file[:200], "an old attempt: the row was built elsewhere meanwhile")
            self._link.ask(host, "forget", {"attempt": name})
            if made:
                self._say(f"{row.name}: the late result of {host} is superseded")

    def _record_late(self, place: Place, host: str, name: str, row: Row, event: Delivered) -> None:
        begun = place.ledger.begin(
            BuildRecord(
                identity=row.wanted.identities[event.output],
                configuration=row.configuration,
                row=row.name,
                output=event.output,
                result="running",
                started=now(),
                log="",
                engine=place.engine,
                channels=place.channels,
                machine=host,
                process=name,
                inputs=row.wanted.inputs[event.output],
                values=row.planned.values,
                command=place.command,
                commit_id=place.commit,
            )
        )
        place.ledger.finish(replace(begun, result="interrupted", reason=_REASON, ended=now()))

    def _events(self, host: str, name: str) -> list[HostEvent]:
        """All events of an attempt that has ended; those so far of one that goes on, which is asked to end."""
        offset, lines = 0, b""
        while True:
            answer = self._link.ask(host, "events", {"attempt": name, "offset": offset})
            content = answer.get("data")
            if not isinstance(content, bytes) or len(lines) > _LARGEST:
                raise Damaged("events are bytes, and not endless")
            lines += content
            offset += len(content)
            if answer.get("goes_on"):
                self._link.ask(host, "stop", {"attempt": name})
            elif not content:
                break
        return list(events_of(lines.rpartition(b"\n")[0]))
