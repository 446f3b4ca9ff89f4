"""The threads of a run: each drives the engine's process of one row; one queue collects their events."""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Event, Log, Output
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.plan.capacity import Limits, Share
from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.runs.retries import NextAttempt, retry_of
from feedstock_tools.builds.runs.row import BuiltRow, build_row
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.builds.runs.under_way import Attempt
from feedstock_tools.units import size_text

__all__ = ["Drivers", "Ended"]

#: The output of a row that is shown at once, and its growth per second, in bytes: more than a terminal shows.
_AT_ONCE = 4 << 20
_PER_SECOND = 1 << 20
_MOST_UNREAD = 16 << 20
_LAST_LINES = 20


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
        self._messages: queue.SimpleQueue[tuple[Work, Event | NextAttempt | Ended]] = queue.SimpleQueue()
        self._stop, self._stopping = os.pipe()
        self._unread = 0
        self._counting = threading.Lock()

    def __len__(self) -> int:
        """The number of rows that are being built."""
        return len(self._threads)

    def start(self, work: Work, share: Share) -> None:
        """Start to build a row."""
        thread = threading.Thread(target=self._drive, args=(work, share), name=work.name, daemon=True)
        self._threads[work.name] = thread
        thread.start()

    def hear(self, seconds: float) -> tuple[Work, Event | NextAttempt | Ended] | None:
        """The next event and its row; None if there is none within some seconds."""
        try:
            work, message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return None
        self._count(message, -1)
        if isinstance(message, Ended):
            self._threads.pop(work.name).join()
        return work, message

    def end_all(self) -> None:
        """End all running builds, and wait until they are recorded."""
        os.close(self._stopping)
        for thread in self._threads.values():
            thread.join()
        os.close(self._stop)

    def _count(self, message: Event | NextAttempt | Ended, sign: int = 1) -> None:
        """Count the bytes that wait for an observer."""
        if isinstance(message, Output):
            with self._counting:
                self._unread += sign * len(message.content)

    def _drive(self, work: Work, share: Share) -> None:
        """A row's thread."""
        try:
            ended = Ended(self._attempts(work, share))
        except BaseException as error:
            ended = Ended(error=error)
        self._messages.put((work, ended))

    def _attempts(self, work: Work, share: Share) -> BuiltRow | None:
        """Build a row, and try again if that can help."""

        shown = _Shown()

        def watch(event: Event | NextAttempt) -> None:
            for shown_event in shown.of(event, full=self._unread > _MOST_UNREAD):
                self._count(shown_event)
                self._messages.put((work, shown_event))

        site, station = self._places[work.configuration]
        attempts: list[BuiltRow] = []
        for number in range(1, self._limits.retries + 2):
            attempt = Attempt(number, share, self._limits.seconds, self._stop, self._limits.log_limit)
            built = build_row(site, station, work, attempt, watch)
            if built is None:  # another run has it now
                break
            attempts.append(built)
            retry = retry_of(built.failed, built.last_lines, number) if built.failed else None
            if retry is None or number > self._limits.retries:
                break
            if retry.fewer_jobs:
                share = replace(share, jobs=max(1, share.jobs // 2))
            watch(NextAttempt(number + 1, retry.because, share.jobs if retry.fewer_jobs else None))
            if select.select([self._stop], [], [], retry.wait)[0]:
                raise Stopped
        return _together(attempts) if attempts else None


class _Shown:
    """What an observer sees of a row: all of it, unless its programs print far more than people read.

    The log file has everything. A slow terminal delays no build, and what waits for it does not fill the memory.
    """

    def __init__(self) -> None:
        self._allowed = float(_AT_ONCE)
        self._since = time.monotonic()
        self._left_out = 0
        self._last = LastLines(_LAST_LINES)

    def of(self, event: Event | NextAttempt, *, full: bool) -> Iterator[Event | NextAttempt]:
        """The events to show when another one comes; no output of programs while too much of it waits."""
        now = time.monotonic()
        self._allowed = min(_AT_ONCE, self._allowed + _PER_SECOND * (now - self._since))
        self._since = now
        if isinstance(event, Output):
            if full or len(event.content) > self._allowed:
                self._left_out += len(event.content)
                self._last.add(event.content)
                return
            self._allowed -= len(event.content)
        if self._left_out:
            size, self._left_out = size_text(self._left_out), 0
            yield Log(f"-- {size} of output are in the log file only; the last lines:", "feedstock-tools")
            yield Output("".join(f"{line}\n" for line in self._last).encode())
        yield event


def _together(attempts: Sequence[BuiltRow]) -> BuiltRow:
    """The result of a row after all its attempts (at least one)."""
    records = tuple(record for attempt in attempts for record in attempt.now)
    return BuiltRow(attempts[0].before, records, attempts[-1].failed, attempts[-1].last_lines)
