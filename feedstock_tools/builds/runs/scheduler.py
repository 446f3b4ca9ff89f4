"""Building several rows in parallel: each in a thread that drives its engine's process; `decide` chooses which begins
when.

The calling thread starts rows, receives events and informs the observer; only it receives signals.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from feedstock_tools.builds.engines.contract import Built, Event
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.ledger import Ledger, this_machine, this_process
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.capacity import Limits, Share
from feedstock_tools.builds.plan.order import seconds_left
from feedstock_tools.builds.plan.work import Place, Work, place_of
from feedstock_tools.builds.runs.decide import Host, Pending, Running, decide
from feedstock_tools.builds.runs.observer import Observer, Progress
from feedstock_tools.builds.runs.retries import Again, why_again
from feedstock_tools.builds.runs.row import BuiltRow, build_row
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.builds.runs.under_way import Attempt
from feedstock_tools.errors import WorkError

__all__ = ["Scheduler"]

#: The interval of progress reports, and of attempts at a row that another run holds, in seconds.
_TICK = 0.2
#: The interval of the run's signs of life, in seconds.
_SIGN_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class _Ended:
    """A row's thread has ended: with its result, with None because another run holds a part of it, or with an error."""

    built: BuiltRow | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Thread:
    """A row under way: its share, its thread, and its start time."""

    running: Running
    thread: threading.Thread
    began: float


class Scheduler:
    """One run over the rows of an agenda, on this machine."""

    def __init__(
        self,
        agenda: Agenda,
        limits: Limits,
        observer: Observer,
        ledger: Ledger,
        sites: Mapping[str, Site],
        stations: Mapping[str, Station],
    ) -> None:
        """Set up the run.

        Args:
            sites: the shared values of each configuration's builds, by name; `stations` this machine's resources for
                them.
        """
        self._works = {work.name: work for work in agenda.todo}
        self._limits = limits
        self._observer = observer
        self._ledger = ledger
        self._sites = sites
        self._stations = stations
        self._host = Host(this_machine(), agenda.capacity, limits.jobs)
        self._pending = [Pending(work.name, work.needs, work.places) for work in agenda.todo]
        self._threads: dict[str, _Thread] = {}
        self._results: dict[str, BuiltRow] = {}
        self._begun: set[str] = set()
        self._broken: set[Place] = set()
        self._left = _TimeLeft(agenda.todo, limits.jobs)
        self._next_sign = time.monotonic() + _SIGN_EVERY
        self._messages: queue.SimpleQueue[tuple[Work, Event | Again | _Ended]] = queue.SimpleQueue()
        self._stop, self._stopping = os.pipe()

    def run(self) -> dict[str, BuiltRow]:
        """Build; return the result of each row that was started, by name.

        Raises:
            WorkError: the artifacts folder, the ledger or a channel cannot be used; all builds have been ended.
        """
        try:
            while self._begin_rows():
                with suppress(queue.Empty):
                    self._hear(*self._messages.get(timeout=_TICK))
                self._observer.progress(self._progress())
                self._give_sign()
            return self._results
        finally:
            with signals_held_back():  # a second Ctrl-C must not keep builds from being recorded
                self._end_all()

    def _begin_rows(self) -> bool:
        """Begin all rows that can begin now; false if nothing runs and no waiting row can ever begin."""
        running = [each.running for each in self._threads.values()]
        now = time.monotonic()
        for start in decide(self._pending, running, [self._host], now):
            self._pending = [each for each in self._pending if each.row != start.row]
            self._begin(self._works[start.row], start.share)
        return bool(self._threads) or any(each.not_before > now for each in self._pending)

    def _begin(self, work: Work, share: Share) -> None:
        if work.name not in self._begun:
            self._begun.add(work.name)
            self._observer.begin(work)
        thread = threading.Thread(target=self._drive, args=(work, share), name=work.name, daemon=True)
        running = Running(work.name, self._host.name, share, work.places)
        self._threads[work.name] = _Thread(running, thread, time.monotonic())
        thread.start()

    def _drive(self, work: Work, share: Share) -> None:
        """A row's thread."""
        try:
            built = self._attempts(work, share)
            self._messages.put((work, _Ended(built)))
        except BaseException as error:
            self._messages.put((work, _Ended(error=error)))

    def _attempts(self, work: Work, share: Share) -> BuiltRow | None:
        """Build a row, with retries if they can help."""

        def watch(event: Event | Again) -> None:
            self._messages.put((work, event))

        site, station = self._sites[work.configuration], self._stations[work.configuration]
        made: list[BuiltRow] = []
        for number in range(1, self._limits.retries + 2):
            attempt = Attempt(number, share, self._limits.seconds, self._stop)
            built = build_row(site, station, work, attempt, watch)
            if built is None:  # another run holds it now
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

    def _hear(self, work: Work, message: Event | Again | _Ended) -> None:
        if isinstance(message, _Ended):
            self._end(work, message)
            return
        if isinstance(message, Built):
            made = {place_of(output) for output in work.missing if output.name == message.output}
            thread = self._threads[work.name]
            running = replace(thread.running, places=thread.running.places - made)
            self._threads[work.name] = replace(thread, running=running)
            self._left.without(made)
        self._observer.event(work, message)

    def _end(self, work: Work, ended: _Ended) -> None:
        self._threads.pop(work.name).thread.join()
        if ended.error is not None:
            raise ended.error
        if ended.built is None:
            self._pending.insert(0, Pending(work.name, work.needs, work.places, time.monotonic() + _TICK))
        else:
            self._results[work.name] = ended.built
            self._left.without(work.places)
            self._observer.end(work, ended.built)
            failed = ended.built.failed
            self._broken |= {place_of(output) for output in work.missing if failed and output.name == failed.output}
            if failed and self._limits.fail_fast:
                self._pending = []
        self._pending = [each for each in self._pending if not each.places & self._broken]

    def _give_sign(self) -> None:
        """Record that the run is alive, for readers of the ledger on other machines."""
        if time.monotonic() >= self._next_sign:
            self._next_sign = time.monotonic() + _SIGN_EVERY
            with suppress(WorkError):  # a ledger that cannot be written is reported when a build ends
                self._ledger.give_sign(this_machine(), this_process())

    def _progress(self) -> Progress:
        failed = sum(built.failed is not None for built in self._results.values())
        now = time.monotonic()
        return Progress(
            done=len(self._results) - failed,
            failed=failed,
            waiting=len(self._pending),
            running={name: now - each.began for name, each in self._threads.items()},
            elsewhere=tuple(each.row for each in self._pending if each.not_before),
            left=self._left.at(now),
        )

    def _end_all(self) -> None:
        """End every running build, and wait until it is recorded."""
        if self._threads:
            self._observer.ending(len(self._threads))
        os.close(self._stopping)
        for each in self._threads.values():
            each.thread.join()
        os.close(self._stop)


class _TimeLeft:
    """The remaining time of a run: computed again for each finished output, and counted down in between."""

    def __init__(self, works: Sequence[Work], jobs: int) -> None:
        self._works = works
        self._jobs = jobs
        self._done: frozenset[Place] = frozenset()
        self._count()

    def without(self, done: AbstractSet[Place]) -> None:
        """Some outputs are finished or failed."""
        self._done |= done
        self._count()

    def at(self, now: float) -> float | None:
        """The remaining seconds; None without known times."""
        return None if self._seconds is None else max(0.0, self._seconds - (now - self._since))

    def _count(self) -> None:
        self._seconds = seconds_left(self._works, self._jobs, self._done)
        self._since = time.monotonic()


def _together(attempts: Sequence[BuiltRow]) -> BuiltRow:
    """The result of a row after all attempts (at least one)."""
    records = tuple(record for each in attempts for record in each.now)
    return BuiltRow(attempts[0].before, records, attempts[-1].failed, attempts[-1].last_lines)
