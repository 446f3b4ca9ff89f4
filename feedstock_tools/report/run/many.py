"""The output of a run of several parallel rows: a live table in a terminal; elsewhere a line for each event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Log, Output, Started
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.runs.logs import HeadAndTail
from feedstock_tools.builds.runs.observer import NextAttempt
from feedstock_tools.report.run.plain import Fold, attempt_text, described, ending_text
from feedstock_tools.wording import duration, shown, shown_log

if TYPE_CHECKING:
    from types import TracebackType

    from feedstock_tools.builds.plan.row import Row
    from feedstock_tools.builds.runs.observer import Progress

#: The number of lines shown from the log of a failed build; the engine adds a dozen lines of advice to the error.
_LAST_LINES = 30
#: The bytes of a row's log that are kept to be folded.
_MOST_FOLDED = 8 << 20


class Lines:
    """An `Observer` of plain lines, each with its row; the end of the log if one fails.

    On a service that folds logs, the whole log of each row when it ends.
    """

    def __init__(self, stream: TextIO, total: int, fold: Fold) -> None:
        self._stream = stream
        self._total = total
        self._fold = fold
        self._ended = 0
        self._logs: dict[str, HeadAndTail] = {}
        self._recent: dict[str, LastLines] = {}
        self._waiting: set[str] = set()

    def say(self, text: str) -> None:
        """Write something the user should know, on lines of its own."""
        self._write(shown(text))

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def begin(self, row: Row) -> None:
        """See `Observer`."""
        expected = f", about {duration(row.wanted.expected)}" if row.wanted.expected else ""
        self.say(f"{row.name}: begins{expected}")

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        """See `Observer`."""
        if isinstance(event, NextAttempt):
            self.say(f"{row.name}: {attempt_text(event)}")
            self._log(row, f"-- {attempt_text(event)}\n".encode())
        elif isinstance(event, Built):
            self.say(f"{row.name}: built {event.package.name} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            for line in self._recent.pop(row.name, ()):
                if line.strip():
                    self._write(f"  {shown_log(line)}")
            self.say(f"{row.name}: {event.output} failed: {event.reason}")
        elif isinstance(event, Output):
            self._log(row, event.content)
        elif isinstance(event, Log):
            if event.stage == "feedstock-tools":
                self.say(f"{row.name}: {event.text.removeprefix('-- ')}")
            self._log(row, _encoded(event.text))

    def _log(self, row: Row, content: bytes) -> None:
        if self._fold.begin:
            self._logs.setdefault(row.name, HeadAndTail(_MOST_FOLDED)).add(content)
        else:
            self._recent.setdefault(row.name, LastLines(_LAST_LINES)).add(content)

    def end(self, row: Row) -> None:
        """See `Observer`."""
        self._ended += 1
        outcome = "failed" if row.failed else "done"
        if self._fold.begin:
            self.say(f"{self._fold.begin}== {described(row)}: {outcome}")
            if log := self._logs.pop(row.name, None):
                self._write(shown_log(log.read().decode(errors="replace").removesuffix("\n")))
            self.say(self._fold.end)
        self.say(f"{row.name}: {outcome} ({self._ended} of {self._total})")

    def progress(self, progress: Progress) -> None:
        """See `Observer`: a row that waits for another run is reported once, the others when something changes."""
        for name in progress.elsewhere:
            if name not in self._waiting:
                self._waiting.add(name)
                self.say(f"{name}: waits for another run, which builds a part of it")

    def ending(self, builds: int, *, go_on: bool) -> None:
        """See `Observer`."""
        self.say(ending_text(builds, go_on=go_on))


class LiveTable:
    """An `Observer` that keeps a table of the running builds on a terminal. Use it as a context."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

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
        """Write something the user should know, on lines of its own."""
        self._console.print(shown(text), soft_wrap=True)

    def begin(self, row: Row) -> None:
        """See `Observer`."""
        self._now[row.name] = (row, "")
        self._recent[row.name] = LastLines(_LAST_LINES)

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        """See `Observer`."""
        if isinstance(event, Started):
            self._now[row.name] = (row, event.output)
        elif isinstance(event, NextAttempt):
            self._recent[row.name].add(f"-- {attempt_text(event)}\n".encode())
        elif isinstance(event, Built):
            self.say(f"built {event.package.name} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            last = (line for line in self._recent[row.name] if line.strip())
            self.say("\n".join([*last, f"{row.name}: {event.output} failed: {event.reason}"]))
        elif isinstance(event, Output):
            self._recent[row.name].add(event.content)
        elif isinstance(event, Log):
            self._recent[row.name].add(_encoded(event.text))

    def end(self, row: Row) -> None:
        """See `Observer`."""
        self._now.pop(row.name, None)

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""
        self._live.update(self._table(progress))

    def ending(self, builds: int, *, go_on: bool) -> None:
        """See `Observer`."""
        self.say(ending_text(builds, go_on=go_on))

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
                yield name, output, duration(elapsed), duration(row.wanted.expected) if row.wanted.expected else "-"
        for name in progress.elsewhere:
            yield name, "waits for another run", "", ""


def _encoded(text: str) -> bytes:
    """A message of an engine as output."""
    return f"{text.rstrip()}\n".encode(errors="replace") if text.strip() else b""
