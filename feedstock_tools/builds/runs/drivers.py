"""The threads of a run: each drives the engine's process of one row; one queue collects their events."""

from __future__ import annotations

import os
import queue
import select
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Event
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.plan.capacity import Limits, Share
from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.runs.retries import Again, why_again
from feedstock_tools.builds.runs.row import BuiltRow, build_row
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.builds.runs.under_way import Attempt

__all__ = ["Drivers", "Ended"]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a row's thread: its result, None if another run builds a part of the row, or an error."""

    built: BuiltRow | None = None
    error: BaseException | None = None


class Drivers:
    """The threads that build rows on this machine."""

    def __init__(self, places: Mapping[str, tuple[Site, Station]], limits: Limits) -> None:
        """Prepare the queue; no thread starts yet.

        Args:
            places: configuration → what its builds share, and what this machine opened for them.
            limits: the time limit of a row, and the number of retries.
        """
        self._places = places
        self._limits = limits
        self._threads: dict[str, threading.Thread] = {}
        self._messages: queue.SimpleQueue[tuple[Work, Event | Again | Ended]] = queue.SimpleQueue()
        self._stop, self._stopping = os.pipe()

    def __len__(self) -> int:
        """The number of rows that are being built."""
        return len(self._threads)

    def start(self, work: Work, share: Share) -> None:
        """Start to build a row."""
        thread = threading.Thread(target=self._drive, args=(work, share), name=work.name, daemon=True)
        self._threads[work.name] = thread
        thread.start()

    def hear(self, seconds: float) -> tuple[Work, Event | Again | Ended] | None:
        """The next event and its row; None if there is none within some seconds."""
        try:
            work, message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(message, Ended):
            self._threads.pop(work.name).join()
        return work, message

    def end_all(self) -> None:
        """End all running builds, and wait until they are recorded."""
        os.close(self._stopping)
        for thread in self._threads.values():
            thread.join()
        os.close(self._stop)

    def _drive(self, work: Work, share: Share) -> None:
        """A row's thread."""
        try:
            ended = Ended(self._attempts(work, share))
        except BaseException as error:
            ended = Ended(error=error)
        self._messages.put((work, ended))

    def _attempts(self, work: Work, share: Share) -> BuiltRow | None:
        """Build a row, and try again if that can help."""

        def watch(event: Event | Again) -> None:
            self._messages.put((work, event))

        site, station = self._places[work.configuration]
        made: list[BuiltRow] = []
        for number in range(1, self._limits.retries + 2):
            attempt = Attempt(number, share, self._limits.seconds, self._stop)
            built = build_row(site, station, work, attempt, watch)
            if built is None:  # another run has it now
                break
            made.append(built)
            retry = why_again(built.failed, built.last_lines, number) if built.failed else None
            if retry is None or number > self._limits.retries:
                break
            if retry.fewer_jobs:
                share = replace(share, jobs=max(1, share.jobs // 2))
            watch(Again(number + 1, retry.because, share.jobs if retry.fewer_jobs else None))
            if select.select([self._stop], [], [], retry.wait)[0]:
                raise Stopped
        return _together(made) if made else None


def _together(attempts: Sequence[BuiltRow]) -> BuiltRow:
    """The result of a row after all its attempts (at least one)."""
    records = tuple(record for each in attempts for record in each.now)
    return BuiltRow(attempts[0].before, records, attempts[-1].failed, attempts[-1].last_lines)
