"""Building several rows at once: each in a thread that drives its engine's process, under tokens for cores and memory.

The thread that calls this starts rows, hears of what happens and tells the console; it alone is reached by signals.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from feedstock_tools.builds.engines.contract import Built, Event, Log
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.plan.capacity import Capacity, Limits, Share, Tokens
from feedstock_tools.builds.plan.needs import Work
from feedstock_tools.builds.runs.observer import Console, Progress
from feedstock_tools.builds.runs.retries import why_again
from feedstock_tools.builds.runs.row import Attempt, BuiltRow, Ground, build_row
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.wording import counted

__all__ = ["Scheduler"]

#: How often the console hears of the progress, and how soon a row that another run has is asked for again, in seconds.
_TICK = 0.2
#: How often the run gives a sign of life, in seconds.
_SIGN_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class _Running:
    work: Work
    share: Share
    thread: threading.Thread
    began: float


@dataclass(frozen=True, slots=True)
class _Ended:
    """A row's thread is at its end: with what it built, with None because another run has a part of it, or an error."""

    built: BuiltRow | None = None
    error: BaseException | None = None


class Scheduler:
    """One run over some rows, in their order as far as tokens and shared outputs allow."""

    def __init__(
        self,
        works: Sequence[Work],
        ground: Callable[[Work], Ground],
        capacity: Capacity,
        limits: Limits,
        console: Console,
        give_sign: Callable[[], None],
    ) -> None:
        """Take the rows.

        Args:
            ground: what the builds of a row stand on.
            give_sign: records that the run is alive, for those who read the ledger on another machine.
        """
        self._pending = list(works)
        self._ground = ground
        self._tokens = Tokens(capacity)
        self._limits = limits
        self._console = console
        self._give_sign = give_sign
        self._next_sign = time.monotonic() + _SIGN_EVERY
        self._running: dict[str, _Running] = {}
        self._results: dict[str, BuiltRow] = {}
        self._busy: set[tuple[str, str]] = set()
        self._broken: set[tuple[str, str]] = set()
        self._again: dict[str, float] = {}
        self._begun: set[str] = set()
        self._messages: queue.SimpleQueue[tuple[Work, Event | _Ended]] = queue.SimpleQueue()
        self._stop, self._stopping = os.pipe()

    def run(self) -> dict[str, BuiltRow]:
        """Build; what came of each row that was begun, by its name.

        Raises:
            WorkError: the artifacts folder, the ledger or a channel cannot be used; all builds have been ended.
        """
        try:
            while self._pending or self._running:
                self._start()
                with suppress(queue.Empty):
                    self._hear(*self._messages.get(timeout=_TICK))
                self._console.progress(self._progress())
                self._sign()
            return self._results
        finally:
            with signals_held_back():  # a second Ctrl-C is not to keep builds from being recorded
                self._end_all()

    def _start(self) -> None:
        """Begin what can be begun. A row that waits for tokens lets no later one pass, or it might wait for ever."""
        for work in list(self._pending):
            if len(self._running) >= self._limits.jobs:
                return
            keys = {_key(output) for output in work.missing}
            if keys & self._broken:
                self._pending.remove(work)
            elif not keys & self._busy and self._again.get(work.name, 0.0) <= time.monotonic():
                share = self._tokens.take(work.needs.cores, work.needs.memory, work.needs.memory_per_job)
                if share is None:
                    return
                self._pending.remove(work)
                self._begin(work, share)

    def _begin(self, work: Work, share: Share) -> None:
        if work.name not in self._begun:
            self._begun.add(work.name)
            self._console.begin(work)
        ground = self._ground(work)
        thread = threading.Thread(target=self._drive, args=(work, ground, share), name=work.name, daemon=True)
        self._busy |= {_key(output) for output in work.missing}
        self._running[work.name] = _Running(work, share, thread, time.monotonic())
        thread.start()

    def _drive(self, work: Work, ground: Ground, share: Share) -> None:
        """A row's thread."""
        try:
            built = self._attempts(work, ground, share)
            self._messages.put((work, _Ended(built)))
        except BaseException as error:
            self._messages.put((work, _Ended(error=error)))

    def _attempts(self, work: Work, ground: Ground, share: Share) -> BuiltRow | None:
        """Build a row, and again where that can help."""

        def watch(event: Event) -> None:
            self._messages.put((work, event))

        made: list[BuiltRow] = []
        for number in range(1, self._limits.retries + 2):
            built = build_row(ground, work.row, Attempt(number, share, self._limits.seconds, self._stop), watch)
            if built is None:  # another run has it now
                break
            made.append(built)
            again = why_again(built.failed, built.last_lines, number) if built.failed else None
            if again is None or number > self._limits.retries:
                break
            if again.fewer_jobs:
                share = Share(share.cores, share.memory, max(1, share.jobs // 2))
            with_jobs = f" with {share.jobs} jobs" if again.fewer_jobs else ""
            watch(Log(f"-- {again.because}: attempt {number + 1} follows{with_jobs}", "feedstock-tools", "warn"))
            if select.select([self._stop], [], [], again.wait)[0]:
                raise Stopped
        return _together(made) if made else None

    def _hear(self, work: Work, message: Event | _Ended) -> None:
        if not isinstance(message, _Ended):
            if isinstance(message, Built):
                self._busy -= {_key(output) for output in work.missing if output.name == message.output}
            self._console.event(work, message)
            return
        running = self._running.pop(work.name)
        running.thread.join()
        self._tokens.give_back(running.share)
        self._busy -= {_key(output) for output in work.missing}
        if message.error is not None:
            raise message.error
        if message.built is None:
            self._again[work.name] = time.monotonic() + _TICK
            self._pending.insert(0, work)
            return
        self._results[work.name] = message.built
        self._console.end(work, message.built)
        failed = message.built.failed
        if failed is not None:
            self._broken |= {_key(output) for output in work.missing if output.name == failed.output}
            if self._limits.fail_fast:
                self._pending.clear()

    def _sign(self) -> None:
        if time.monotonic() >= self._next_sign:
            self._next_sign = time.monotonic() + _SIGN_EVERY
            with suppress(WorkError):  # whoever cannot write the ledger when a build ends is told then
                self._give_sign()

    def _progress(self) -> Progress:
        failed = sum(built.failed is not None for built in self._results.values())
        now = time.monotonic()
        return Progress(
            done=len(self._results) - failed,
            failed=failed,
            waiting=len(self._pending),
            running={name: now - running.began for name, running in self._running.items()},
            elsewhere=tuple(work.name for work in self._pending if work.name in self._again),
        )

    def _end_all(self) -> None:
        """End every build that runs, and wait until it is recorded."""
        if self._running:
            what = counted(len(self._running), "build")
            self._console.say(f"Ending {what}. What is done stays done; the same command goes on from there.")
        os.close(self._stopping)
        for running in self._running.values():
            running.thread.join()
        os.close(self._stop)


def _together(attempts: Sequence[BuiltRow]) -> BuiltRow:
    """What came of a row after all attempts (at least one)."""
    records = tuple(record for each in attempts for record in each.now)
    return BuiltRow(attempts[0].before, records, attempts[-1].failed, attempts[-1].last_lines)


def _key(output: PlannedOutput) -> tuple[str, str]:
    """The place of a package in a channel: what two rows that make it share."""
    return output.subdir, output.stem
