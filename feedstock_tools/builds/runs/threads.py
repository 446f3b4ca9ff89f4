"""The threads of a run: each builds one row, here or on a host; one queue collects their events."""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Built, Event, Output
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.plan.capacity import Limits
from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.runs.decide import Start
from feedstock_tools.builds.runs.hosts.crew import Crew, Elsewhere
from feedstock_tools.builds.runs.logs.shown import Shown
from feedstock_tools.builds.runs.retries import NextAttempt, retry_of
from feedstock_tools.builds.runs.row import BuiltRow
from feedstock_tools.builds.runs.under_way import Attempt

#: Bytes of output that may wait for an observer.
_MOST_UNREAD = 16 << 20


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a row's thread: its result, None if another run builds a part of the row, or an error.

    `elsewhere`: the row must begin again, for this reason.
    """

    built: BuiltRow | None = None
    error: BaseException | None = None
    elsewhere: str = ""


class RowThreads:
    """The threads that build rows."""

    def __init__(self, crew: Crew, limits: Limits) -> None:
        """Prepare the queue; no thread starts yet.

        Args:
            crew: builds the rows.
            limits: the time limit of a row, and the number of retries.
        """
        self._crew = crew
        self._limits = limits
        self._threads: dict[str, threading.Thread] = {}
        self._messages: queue.SimpleQueue[tuple[Work, Event | NextAttempt | Ended]] = queue.SimpleQueue()
        self._stop, self._stopping = os.pipe()
        self._unread = 0
        self._counting = threading.Lock()

    def __len__(self) -> int:
        """The number of rows that are being built."""
        return len(self._threads)

    def start(self, work: Work, start: Start) -> None:
        """Start to build a row."""
        thread = threading.Thread(target=self._run, args=(work, start), name=work.name, daemon=True)
        self._threads[work.name] = thread
        thread.start()

    def hear(self, seconds: float) -> Iterator[tuple[Work, Event | NextAttempt | Ended]]:
        """Each event and its row, for some seconds; it ends with a package or a row, after which others can begin."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                work, message = self._messages.get(timeout=left)
            except queue.Empty:
                return
            self._count(message, -1)
            if isinstance(message, Ended):
                self._threads.pop(work.name).join()
            yield work, message
            if isinstance(message, Built | Ended):
                return

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

    def _run(self, work: Work, start: Start) -> None:
        """A row's thread."""
        try:
            ended = Ended(self._attempts(work, start))
        except Elsewhere as reason:
            ended = Ended(elsewhere=str(reason))
        except BaseException as error:
            ended = Ended(error=error)
        self._messages.put((work, ended))

    def _attempts(self, work: Work, start: Start) -> BuiltRow | None:
        """Build a row, and try again if that can help."""

        shown = Shown()

        def watch(event: Event | NextAttempt) -> None:
            for shown_event in shown.of(event, full=self._unread > _MOST_UNREAD):
                self._count(shown_event)
                self._messages.put((work, shown_event))

        share = start.share
        attempts: list[BuiltRow] = []
        for number in range(1, self._limits.retries + 2):
            attempt = Attempt(number, share, self._limits.seconds, self._stop, self._limits.log_limit)
            built = self._crew.build(work, start.host, attempt, watch)
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


def _together(attempts: Sequence[BuiltRow]) -> BuiltRow:
    """The result of a row after all its attempts (at least one)."""
    records = tuple(record for attempt in attempts for record in attempt.now)
    return BuiltRow(attempts[0].before, records, attempts[-1].failed, attempts[-1].last_lines)
