"""The output of a run while it goes on: the log as it comes, a table of several rows, lines of events, or failures."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Log, Output, Started
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.runs.logs import HeadAndTail
from feedstock_tools.builds.runs.observer import NextAttempt
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted, duration, fitted, shown, shown_log, size_text

if TYPE_CHECKING:
    from types import TracebackType

    from feedstock_tools.builds.plan.row import Row
    from feedstock_tools.builds.runs.observer import Progress
    from feedstock_tools.channel.pip import Fetching, Watch

#: The number of lines shown from the log of a failed build; the engine adds a dozen lines of advice to the error.
_LAST_LINES = 30
#: The bytes of a row's log that are kept to be folded.
_MOST_FOLDED = 8 << 20
#: Stages of the engine's log that are hidden from the reader; they are in the log file.
_QUIET_STAGES = frozenset({"index_subdir", "get_or_create_subdir"})
#: The processor time that showing a log may take at once, in seconds, and as a share of the run's time. Only a flood
#: takes more, which nobody can read, and for which the build would have to wait.
_AT_ONCE, _SHARE = 0.1, 0.05


@dataclass(frozen=True, slots=True)
class Fold:
    """The mark before the title of a part, and the line after its end; empty if nothing folds."""

    begin: str = ""
    end: str = ""


UNFOLDED = Fold()
#: The variable that a service sets in its jobs → its marks.
_SERVICES = {
    "GITHUB_ACTIONS": Fold("::group::", "::endgroup::"),
    "TF_BUILD": Fold("##[group]", "##[endgroup]"),  # Azure Pipelines
}


def fold_of(machine: Mapping[str, str]) -> Fold:
    """The marks of the current service, according to the environment of the machine."""
    return next((fold for name, fold in _SERVICES.items() if machine.get(name, "").lower() == "true"), UNFOLDED)


class _Pace:
    """How much of a log is shown: all of it, up to some share of the time.

    Attributes:
        left_out: the bytes that were not shown since the last ones that were.
    """

    def __init__(self) -> None:
        self._room = _AT_ONCE
        self._since = time.monotonic()
        self.left_out = 0

    def has_room(self) -> bool:
        """Whether more is shown now."""
        now = time.monotonic()
        self._room = min(_AT_ONCE, self._room + (now - self._since) * _SHARE)
        self._since = now
        return self._room > 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A block that shows something; waiting for a slow terminal does not count."""
        before = time.thread_time()
        yield
        self._room -= time.thread_time() - before


class _Display:
    """An `Observer` that shows nothing but that a run is cut short."""

    def say(self, text: str) -> None:
        """Write something the user should know, on lines of its own."""
        raise NotImplementedError

    def begin(self, row: Row) -> None: ...

    def event(self, row: Row, event: Event | NextAttempt) -> None: ...

    def end(self, row: Row) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def ending(self, builds: int, *, go_on: bool) -> None:
        if go_on:
            then = "Run the same command to continue, or end them with: feedstock-tools fleet stop"
            self.say(f"Leaving {counted(builds, 'build')} to the fleet. {then}")
        else:
            then = "Finished packages stay; run the same command to continue."
            self.say(f"Ending {counted(builds, 'build')}. {then}")


class Terminal(_Display):
    """An `Observer` that writes what the scripts of a row print to a stream as it comes; for one row at a time.

    The engine's own tables are in the log file. They come too with `whole`, and where the service folds them; without,
    the last of them when an output fails.
    """

    def __init__(self, stream: TextIO, fold: Fold = UNFOLDED, *, whole: bool = False, width: int | None = None) -> None:
        """Notes and answers are broken at blanks into lines of `width` characters; None: they are not."""
        if hasattr(stream, "reconfigure"):  # a log may contain characters that the terminal cannot show
            stream.reconfigure(errors="replace")
        self.stream = stream
        self.fold = fold
        self.width = width
        self._whole = whole or bool(fold.begin)
        self._hidden: deque[str] = deque(maxlen=_LAST_LINES)
        self._begins_line = True
        self._pace = _Pace()

    def say(self, text: str) -> None:
        self.answer(text)

    def answer(self, text: str, *, copied: bool = False) -> None:
        """Write what the user asked for, on lines of its own; what is for copying stays as it is."""
        self._write(shown(text) if copied or self.width is None else fitted(shown(text), self.width, cut=False))

    def _write(self, text: str) -> None:
        self._say_left_out()
        self.stream.write(f"{'' if self._begins_line else chr(10)}{text}\n")
        self.stream.flush()
        self._begins_line = True

    def _output(self, content: bytes) -> None:
        """What a program printed: whole lines, or a part of a long one."""
        if not self._pace.has_room():
            self._pace.left_out += len(content)
            return
        self._say_left_out()
        with self._pace.taken():
            self.stream.write(shown_log(content.decode(errors="replace")))
            self.stream.flush()
        self._begins_line = content.endswith(b"\n")

    def _say_left_out(self) -> None:
        if size := self._pace.left_out:
            self._pace.left_out = 0
            self._write(f"-- {size_text(size)} that were printed too fast to be shown are in the log file")

    def begin(self, row: Row) -> None:
        self._hidden.clear()
        self._write(f"\n{self.fold.begin}== {shown(described(row))}")

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, NextAttempt):
            self.say(f"-- {attempt_text(event)}")
        elif isinstance(event, Started):
            self.say(f"-- building {event.output}")
        elif isinstance(event, Built):
            self.say(f"-- built {event.shown} in {event.seconds:.2f} s")
        elif isinstance(event, Failed):
            for text in self._hidden:
                self._write(shown_log(text))
            first, _, _ = event.reason.partition("\n")  # the rest is in the summary that follows
            self.say(f"-- {event.output} failed: {first}")
        elif isinstance(event, Output):
            self._hidden.clear()
            self._output(event.content)
        elif event.stage not in _QUIET_STAGES and event.text.strip():
            if self._whole or event.stage == "feedstock-tools":
                self._write(shown_log(event.text.rstrip()))
            else:
                self._hidden.extend(event.text.rstrip().splitlines())

    def end(self, row: Row) -> None:
        if self.fold.end:
            self._write(self.fold.end)


class Failures(Terminal):
    """An `Observer` of failures alone, for any number of rows."""

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        super().__init__(stream, width=width)
        self._recent: dict[str, LastLines] = {}

    def say(self, text: str) -> None:
        """Leave out a note."""

    def begin(self, row: Row) -> None:
        self._recent[row.name] = LastLines(_LAST_LINES)

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, Output):
            self._recent[row.name].add(event.content)
        elif isinstance(event, Log):
            self._recent[row.name].add(f"{event.text.rstrip()}\n".encode(errors="replace"))
        elif isinstance(event, Failed):
            for line in self._recent[row.name]:
                if line.strip():
                    self._write(f"  {shown_log(line)}")
            self.answer(f"{row.title}: {event.output} failed: {event.reason}")

    def end(self, row: Row) -> None:
        self._recent.pop(row.name, None)


class Lines(_Display):
    """An `Observer` of plain lines, each with its row; the end of the log if one fails.

    On a service that folds logs, the whole log of each row when it ends.
    """

    def __init__(self, stream: TextIO, total: int, fold: Fold) -> None:
        self._stream = stream
        self._total = total
        self._fold = fold
        self._ended: set[str] = set()
        self._logs: dict[str, HeadAndTail] = {}
        self._recent: dict[str, LastLines] = {}
        self._waiting: set[str] = set()

    def say(self, text: str) -> None:
        self._write(shown(text))

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def begin(self, row: Row) -> None:
        expected = f", about {duration(row.wanted.expected)}" if row.wanted.expected else ""
        self.say(f"{row.title}: begins{expected}")

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, NextAttempt):
            self.say(f"{row.title}: {attempt_text(event)}")
            self._log(row, f"-- {attempt_text(event)}\n".encode())
        elif isinstance(event, Built):
            self.say(f"{row.title}: built {event.shown} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            for line in self._recent.pop(row.name, ()):
                if line.strip():
                    self._write(f"  {shown_log(line)}")
            self.say(f"{row.title}: {event.output} failed: {event.reason}")
        elif isinstance(event, Output):
            self._log(row, event.content)
        elif isinstance(event, Log):
            if event.stage == "feedstock-tools":
                self.say(f"{row.title}: {event.text.removeprefix('-- ')}")
            self._log(row, _encoded(event.text))

    def _log(self, row: Row, content: bytes) -> None:
        if self._fold.begin:
            self._logs.setdefault(row.name, HeadAndTail(_MOST_FOLDED)).add(content)
        else:
            self._recent.setdefault(row.name, LastLines(_LAST_LINES)).add(content)

    def end(self, row: Row) -> None:
        self._ended.add(row.name)
        outcome = "failed" if row.failed else "done"
        if self._fold.begin:
            self._write(f"{self._fold.begin}== {shown(described(row))}: {outcome}")
            if log := self._logs.pop(row.name, None):
                self._write(shown_log(log.read().decode(errors="replace").removesuffix("\n")))
            self._write(self._fold.end)
        self.say(f"{row.title}: {outcome} ({len(self._ended)} of {self._total})")

    def progress(self, progress: Progress) -> None:
        for name in progress.elsewhere:
            if name not in self._waiting:
                self._waiting.add(name)
                self.say(f"{name}: waits for another run, which builds a part of it")


class LiveTable(_Display):
    """An `Observer` that keeps a table of the running builds on a terminal. Use it as a context."""

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._width = width
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, refresh_per_second=5, transient=True)
        self._now: dict[str, tuple[Row, str]] = {}
        self._recent: dict[str, LastLines] = {}

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._print(shown(text) if self._width is None else fitted(shown(text), self._width, cut=False))

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def begin(self, row: Row) -> None:
        self._now[row.name] = (row, "")
        self._recent[row.name] = LastLines(_LAST_LINES)

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, Started):
            self._now[row.name] = (row, event.output)
        elif isinstance(event, NextAttempt):
            self._recent[row.name].add(f"-- {attempt_text(event)}\n".encode())
        elif isinstance(event, Built):
            self.say(f"built {event.shown} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            for line in filter(str.strip, self._recent[row.name]):
                self._print(shown(line))
            self.say(f"{row.title}: {event.output} failed: {event.reason}")
        elif isinstance(event, Output):
            self._recent[row.name].add(event.content)
        elif isinstance(event, Log):
            self._recent[row.name].add(_encoded(event.text))

    def end(self, row: Row) -> None:
        self._now.pop(row.name, None)

    def progress(self, progress: Progress) -> None:
        self._live.update(self._table(progress))

    def _table(self, progress: Progress) -> Any:
        from rich.table import Table
        from rich.text import Text

        left = f", about {duration(progress.left)} left" if progress.left else ""
        title = f"{progress.done} done, {progress.failed} failed, {progress.waiting} waiting{left}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name in ("building", "output"):
            table.add_column(name, overflow="ellipsis")  # a narrow terminal cuts off names, not times
        for name in ("elapsed", "expected"):
            table.add_column(name, no_wrap=True, justify="right")
        for cells in self._rows(progress):
            table.add_row(*(Text(shown(cell)) for cell in cells))
        return table

    def _rows(self, progress: Progress) -> Iterable[tuple[str, str, str, str]]:
        for name, elapsed in progress.running.items():
            if name in self._now:
                row, output = self._now[name]
                yield (
                    row.title,
                    output,
                    duration(elapsed),
                    duration(row.wanted.expected) if row.wanted.expected else "-",
                )
        for name in progress.elsewhere:
            yield name, "waits for another run", "", ""


def attempt_text(following: NextAttempt) -> str:
    """The message before another attempt: `it was killed: attempt 2 follows with 4 jobs`."""
    with_jobs = f" with {following.jobs} jobs" if following.jobs is not None else ""
    return f"{following.because}: attempt {following.attempt} follows{with_jobs}"


def described(row: Row) -> str:
    """A row with its platform and variant: `linux_64_… (linux-64, CUDA 11.2, Python 3.11)`."""
    python = f", Python {row.planned.python}" if row.planned.python else ""
    accelerator = f"CUDA {row.planned.cuda}" if row.planned.cuda else "CPU"
    return f"{row.title} ({row.platform}, {accelerator}{python})"


def _encoded(text: str) -> bytes:
    """A message of an engine as output."""
    return f"{text.rstrip()}\n".encode(errors="replace") if text.strip() else b""


def fetching_in_lines(say: Callable[[str], None]) -> Watch:
    """A `Watch` that reports a download in a line at its start and one at its end; a sign of life has the rest."""
    begun: set[tuple[str, str]] = set()

    def watch(progress: Fetching) -> None:
        key = progress.what, progress.stage
        line = _line(progress, first=key not in begun)
        if key not in begun:
            say(line)
        stage(line)
        begun.add(key)

    return watch


def _line(progress: Fetching, *, first: bool) -> str:
    size = f"{progress.size / 1e6:.0f} MB" if progress.size is not None else ""
    after = f"after {progress.seconds:.0f} s"
    if progress.stage == "ready":
        return f"{progress.what}: ready {after}, and kept for later builds{f'; {progress.why}' if progress.why else ''}"
    verb = progress.stage.capitalize()
    if first:
        return f"{verb} {progress.what}{f' ({size})' if size else ''}{f': {progress.why}' if progress.why else ''}"
    fetched = f"{progress.done / 1e6:.0f} MB"
    return f"{verb} {progress.what}: {f'{fetched} of {size}' if size else fetched} {after}"
