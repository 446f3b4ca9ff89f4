"""A run: `decide` chooses which row begins when and where, threads build them, and the observer is informed.

The calling thread starts rows and receives events through a queue; only it receives signals.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Built, Event, Log, Output
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.capacity import Limits
from feedstock_tools.builds.plan.hosts import EngineNeeds, Host
from feedstock_tools.builds.plan.order import seconds_left
from feedstock_tools.builds.plan.row import Place, Work
from feedstock_tools.builds.runs.building import BuiltRow
from feedstock_tools.builds.runs.crew import Crew, Elsewhere
from feedstock_tools.builds.runs.decide import Start
from feedstock_tools.builds.runs.observer import Observer, Progress, Shown
from feedstock_tools.builds.runs.retries import NextAttempt, retry_of
from feedstock_tools.builds.runs.row_build import Attempt
from feedstock_tools.builds.runs.state import RunState
from feedstock_tools.errors import WorkError

#: How often the observer hears of the progress, and how soon it tries a row again that another run builds, in seconds.
_TICK = 0.2
#: How often the run gives a sign of life, in seconds.
_SIGN_EVERY = 60.0
#: Bytes of output that may wait for an observer.
_MOST_UNREAD = 16 << 20


def carry_out(
    agenda: Agenda,
    limits: Limits,
    observer: Observer,
    ledger: Ledger,
    crew: Crew,
    engines: Mapping[str, EngineNeeds] | None = None,
) -> Mapping[str, BuiltRow]:
    """Build the rows of an agenda; the result of each row that was begun, by name.

    Args:
        crew: builds them.
        engines: configuration → what its engine asks of a host; without it, nothing.

    Raises:
        WorkError: the artifacts folder, the ledger or a channel cannot be used; all builds here have been ended.
    """
    state = RunState(agenda.todo, fail_fast=limits.fail_fast, engines=engines)
    threads = RowThreads(crew, limits)
    run = _Run(agenda, state, threads, observer, _TimeLeft(agenda.todo, limits.jobs))
    sign = _SignOfLife(ledger)
    try:
        while not run.begin(crew):
            observer.progress(run.progress())
            for work, message in threads.hear(_TICK):
                run.take(work, message)
            sign.give(crew.signs())
        return state.results
    finally:
        with signals_held_back():  # a second Ctrl-C must not keep builds from being recorded
            if len(threads):
                observer.ending(len(threads), go_on=crew.outlives_run)
            threads.end_all()


class _Run:
    """The state of a run, the threads that change it, and who watches."""

    def __init__(
        self, agenda: Agenda, state: RunState, threads: RowThreads, observer: Observer, left: _TimeLeft
    ) -> None:
        self._works = {work.name: work for work in agenda.todo}
        self._state = state
        self._threads = threads
        self._observer = observer
        self._left = left
        self._began: dict[str, float] = {}
        self._hosts: tuple[Host, ...] = ()

    def begin(self, crew: Crew) -> bool:
        """Begin the rows that can begin now, or are under way; returns whether the run is over."""
        now = time.monotonic()
        for start in crew.returned([waiting.row for waiting in self._state.pending]):
            self._state.take_over(start)
            self._start(start, now)
        self._hosts = tuple(crew.hosts())
        for start in self._state.begin(self._hosts, now):
            self._start(start, now)
        return self._state.is_over(now) and not (self._state.pending and crew.is_waiting())

    def _start(self, start: Start, now: float) -> None:
        work = self._works[start.row]
        if start.row not in self._began:
            self._observer.begin(work)
        self._began[start.row] = now
        self._threads.start(work, start)

    def take(self, work: Work, message: Event | NextAttempt | Ended) -> None:
        """Handle an event of a running row."""
        if not isinstance(message, Ended):
            if isinstance(message, Built):
                self._left.without(self._state.made(work.name, message.output))
            self._observer.event(work, message)
        elif message.error is not None:
            raise message.error
        elif message.elsewhere:
            self._state.postpone(work.name, 0.0)
            self._observer.event(work, Log(f"-- {message.elsewhere}", "feedstock-tools", "warn"))
        elif message.built is None:
            self._state.postpone(work.name, time.monotonic() + _TICK)
        else:
            self._state.end(work.name, message.built)
            self._left.without(work.places)
            self._observer.end(work, message.built)

    def progress(self) -> Progress:
        """How far the run is."""
        now, state = time.monotonic(), self._state
        return Progress(
            done=len(state.results) - state.failed,
            failed=state.failed,
            waiting=len(state.pending),
            running={name: now - self._began[name] for name in state.running},
            elsewhere=tuple(waiting.row for waiting in state.pending if waiting.not_before),
            left=self._left.at(now),
            hosts=self._hosts,
            on={name: running.host for name, running in state.running.items()},
        )


class _SignOfLife:
    """The sign of life that a run records from time to time, for readers of the ledger on other machines."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._next = time.monotonic() + _SIGN_EVERY

    def give(self, signs: Iterable[tuple[str, str]]) -> None:
        """Record it for machines and processes, if the time has come."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SIGN_EVERY
            with suppress(WorkError):  # if the ledger cannot be written, the end of a build reports it
                for machine, process in signs:
                    self._ledger.give_sign(machine, process)


class _TimeLeft:
    """The time that the rest of a run takes: computed again after each output, and counted down in between."""

    def __init__(self, works: Sequence[Work], jobs: int) -> None:
        self._works = works
        self._jobs = jobs
        self._done: frozenset[Place] = frozenset()
        self._count()

    def without(self, done: AbstractSet[Place]) -> None:
        """Leave out outputs that are built, or that will not be."""
        self._done |= done
        self._count()

    def at(self, now: float) -> float | None:
        """Seconds; None where no time is known."""
        return None if self._seconds is None else max(0.0, self._seconds - (now - self._since))

    def _count(self) -> None:
        self._seconds = seconds_left(self._works, self._jobs, self._done)
        self._since = time.monotonic()


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
