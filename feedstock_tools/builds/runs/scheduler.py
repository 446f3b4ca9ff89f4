"""A run: `decide`, or the crew itself, chooses which row begins when and where; threads build them, and an observer
is informed.

The calling thread starts rows and receives events through a queue; only it receives signals.
"""

from __future__ import annotations

import os
import queue
import re
import select
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Log, Output
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Host, Limits
from feedstock_tools.builds.plan.order import seconds_left
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.crew import Crew, Elsewhere
from feedstock_tools.builds.runs.observer import NextAttempt, Observer, Progress, Throttle
from feedstock_tools.builds.runs.state import RunState
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PackageId

#: How often the observer hears of the progress, and how soon it tries a row again that another run builds, in seconds.
_TICK = 0.2
#: How often the run gives a sign of life, in seconds.
_SIGN_EVERY = 60.0
#: Bytes of output that may wait for an observer.
_MOST_UNREAD = 16 << 20
#: Network failures in the wording of py-rattler-build, curl and git.
_NETWORK = re.compile(
    r"error sending request|connection (?:reset|refused|closed|timed out|aborted)|timed? ?out|dns error"
    r"|temporary failure in name resolution|could not resolve host|name or service not known|network is unreachable"
    r"|(?:status|error|http(?:/[\d.]+)?)[^\n/]{0,20}\b(?:429|500|502|503|504)\b|early eof|unexpected end of file"
    r"|incomplete message|ssl_error_syscall|the remote end hung up|error decoding response body"
    r"|request failed after \d+ retries",
    re.IGNORECASE,
)
#: The messages of compilers and kernels when memory runs out.
_MEMORY = re.compile(
    r"out of memory|cannot allocate memory|virtual memory exhausted|bad_alloc|memoryerror|its limit of \d+ MiB"
    r"|\bkilled\b[^\n]*(?:cc1|cc1plus|collect2|\bld\b|program|signal)|fatal error: killed|(?:^|\W)killed\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_KILLED = re.compile(r"ended with signal 9\b|signal:? 9\b|SIGKILL")
#: The first wait before the network is tried again, in seconds; each further one is three times as long.
_FIRST_WAIT = 5.0


def carry_out(agenda: Agenda, limits: Limits, observer: Observer, ledger: Ledger, crew: Crew) -> Mapping[str, Row]:
    """Build the rows of an agenda; those that have ended, by name.

    Args:
        crew: builds them.

    Raises:
        WorkError: the artifacts folder, the ledger or a channel cannot be used; all builds here have been ended.
    """
    state = RunState(agenda.todo, fail_fast=limits.fail_fast)
    threads = _RowThreads(crew, limits)
    run = _Run(state, threads, observer, _TimeLeft(agenda.todo, limits.jobs))
    sign = _SignOfLife(ledger)
    try:
        while not run.begin(crew):
            observer.progress(run.progress())
            for row, message in threads.hear(_TICK):
                run.take(row, message)
            sign.give(crew.signs())
        return state.ended
    finally:
        with signals_held_back():  # a second Ctrl-C must not keep builds from being recorded
            if len(threads):
                observer.ending(len(threads), go_on=crew.places_rows)
            threads.end_all()


class _Run:
    """The state of a run, the threads that change it, and who watches."""

    def __init__(self, state: RunState, threads: _RowThreads, observer: Observer, left: _TimeLeft) -> None:
        self._state = state
        self._threads = threads
        self._observer = observer
        self._left = left
        self._began: dict[str, float] = {}
        self._hosts: tuple[Host, ...] = ()
        self._dashboard: int | None = None

    def begin(self, crew: Crew) -> bool:
        """Begin the rows that can begin now, or are under way; returns whether the run is over."""
        now = time.monotonic()
        for row in crew.lost(self._state.inheriting):
            self._state.again(row)
        for row in crew.returned([waiting.name for waiting in self._state.pending]):
            self._state.take_over(row)
            self._start(row, now)
        self._hosts, self._dashboard = tuple(crew.present_hosts()), crew.dashboard
        for row in self._state.begin(() if crew.places_rows else self._hosts, now):
            self._start(row, now)
        return self._state.is_over(now) and not (self._state.pending and crew.is_waiting())

    def _start(self, row: Row, now: float) -> None:
        if row.name not in self._began:
            self._observer.begin(row)
        self._began[row.name] = now
        self._threads.start(row)

    def take(self, row: Row, message: Event | NextAttempt | _ThreadEnd) -> None:
        if not isinstance(message, _ThreadEnd):
            if isinstance(message, Built):
                self._left.without(self._state.made(row.name, message.output))
            self._observer.event(row, message)
        elif message.error is not None:
            raise message.error
        elif message.elsewhere:
            self._state.postpone(row.name, 0.0)
            self._observer.event(row, Log(f"-- {message.elsewhere}", "feedstock-tools", "warn"))
        elif message.ended is None:
            self._state.postpone(row.name, time.monotonic() + _TICK)
        else:
            ended = self._state.end(row.name, message.ended)
            self._left.without(row.wanted.packages)
            self._observer.end(ended)

    def progress(self) -> Progress:
        now, state = time.monotonic(), self._state
        return Progress(
            done=len(state.ended) - state.failed,
            failed=state.failed,
            waiting=len(state.pending),
            running={name: now - self._began[name] for name in state.running},
            elsewhere=tuple(row.title for row in state.pending if row.wanted.not_before),
            left=self._left.at(now),
            hosts=self._hosts,
            on={name: row.at.host for name, row in state.running.items()},
            dashboard=self._dashboard,
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

    def __init__(self, rows: Sequence[Row], jobs: int) -> None:
        self._rows = rows
        self._jobs = jobs
        self._done: frozenset[PackageId] = frozenset()
        self._count()

    def without(self, done: AbstractSet[PackageId]) -> None:
        """Leave out packages that are built, or that will not be."""
        self._done |= done
        self._count()

    def at(self, now: float) -> float | None:
        """Seconds; None where no time is known."""
        return None if self._seconds is None else max(0.0, self._seconds - (now - self._since))

    def _count(self) -> None:
        self._seconds = seconds_left(self._rows, self._jobs, self._done)
        self._since = time.monotonic()


@dataclass(frozen=True, slots=True)
class _ThreadEnd:
    """The end of a row's thread: what became of the row, None if another run builds a part of it; or an error.

    `elsewhere`: the row must begin again, for this reason.
    """

    ended: Ended | None = None
    error: BaseException | None = None
    elsewhere: str = ""


class _RowThreads:
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
        # A SimpleQueue of CPython 3.11 can wait for ever if its time ends while it looks again.
        self._messages: queue.Queue[tuple[Row, Event | NextAttempt | _ThreadEnd]] = queue.Queue()
        self._stop, self._stopping = os.pipe()
        self._unread = 0
        self._counting = threading.Lock()

    def __len__(self) -> int:
        """The number of rows that are being built."""
        return len(self._threads)

    def start(self, row: Row) -> None:
        thread = threading.Thread(target=self._run, args=(row,), name=row.name, daemon=True)
        self._threads[row.name] = thread
        thread.start()

    def hear(self, seconds: float) -> Iterator[tuple[Row, Event | NextAttempt | _ThreadEnd]]:
        """Each event and its row, for some seconds; it ends with a package or a row, after which others can begin."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                row, message = self._messages.get(timeout=left)
            except queue.Empty:
                return
            self._count(message, -1)
            if isinstance(message, _ThreadEnd):
                self._threads.pop(row.name).join()
            yield row, message
            if isinstance(message, Built | _ThreadEnd):
                return

    def end_all(self) -> None:
        """End all running builds, and wait until they are recorded."""
        os.close(self._stopping)
        for thread in self._threads.values():
            thread.join()
        os.close(self._stop)

    def _count(self, message: Event | NextAttempt | _ThreadEnd, sign: int = 1) -> None:
        """Count the bytes that wait for an observer."""
        if isinstance(message, Output):
            with self._counting:
                self._unread += sign * len(message.content)

    def _run(self, row: Row) -> None:
        try:
            end = _ThreadEnd(self._attempts(row))
        except Elsewhere as reason:
            end = _ThreadEnd(elsewhere=str(reason))
        except BaseException as error:
            end = _ThreadEnd(error=error)
        self._messages.put((row, end))

    def _attempts(self, row: Row) -> Ended | None:
        """Build a row, and try again if that can help."""
        shown = Throttle()

        def watch(event: Event | NextAttempt) -> None:
            for shown_event in shown.of(event, full=self._unread > _MOST_UNREAD):
                self._count(shown_event)
                self._messages.put((row, shown_event))

        limits = self._limits
        running = replace(row.at, seconds=limits.seconds, log_limit=limits.log_limit)
        attempts: list[Ended] = []
        for number in range(1, limits.retries + 2):
            running = replace(running, attempt=number)
            ended = self._crew.build(replace(row, running=running), self._stop, watch)
            if ended is None:  # another run has it now: the row waits for what that makes of it
                return None
            attempts.append(ended)
            retry = retry_of(ended.failed, ended.last_lines, number) if ended.failed else None
            if retry is None or number > limits.retries:
                break
            if retry.fewer_jobs:
                share = running.share
                running = replace(running, share=replace(share, jobs=max(1, share.jobs // 2)))
            watch(NextAttempt(number + 1, retry.because, running.share.jobs if retry.fewer_jobs else None))
            if select.select([self._stop], [], [], retry.wait)[0]:
                raise Stopped
        return _together(attempts)


def _together(attempts: Sequence[Ended]) -> Ended:
    """What became of a row after all its attempts (at least one)."""
    records = tuple(record for attempt in attempts for record in attempt.now)
    return replace(attempts[-1], before=attempts[0].before, now=records)


@dataclass(frozen=True, slots=True)
class Retry:
    """Advice to try again: the reason in words, the seconds to wait, and whether with fewer jobs."""

    because: str
    wait: float = 0.0
    fewer_jobs: bool = False


def retry_of(failed: Failed, last_lines: Iterable[str], attempt: int) -> Retry | None:
    """The retry that may succeed after a failure: of the network, or of a build that ran out of memory. Else None.

    A compiler error does not pass; retrying it only costs hours.

    Args:
        failed: the end of the build.
        last_lines: the end of its log.
        attempt: the number of the attempt that failed, from 1.
    """
    text = "\n".join([failed.reason, *last_lines])
    if failed.during in ("script", "engine", "memory"):
        if _MEMORY.search(text):
            return Retry("it ran out of memory", fewer_jobs=True)
        if _KILLED.search(failed.reason):
            return Retry("it was killed", fewer_jobs=True)
    if failed.during in ("solve", "packages", "engine") and _NETWORK.search(text):
        return Retry("the network failed", wait=_FIRST_WAIT * 3 ** (attempt - 1))
    return None
