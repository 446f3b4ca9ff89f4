"""The output of a run of several parallel rows: a live table in a terminal; elsewhere a line for each event."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Started
from feedstock_tools.builds.runs.retries import Again
from feedstock_tools.report.run.folding import Fold
from feedstock_tools.report.run.plain import again_text, described, ending_text
from feedstock_tools.wording import duration, shown, shown_log

if TYPE_CHECKING:
    from types import TracebackType

    from feedstock_tools.builds.plan.work import Work
    from feedstock_tools.builds.runs.observer import Progress
    from feedstock_tools.builds.runs.row import BuiltRow

__all__ = ["Lines", "LiveTable"]

#: The number of lines shown from the log of a failed build; the engine adds a dozen lines of advice to the error.
_LAST_LINES = 30


class Lines:
    """An `Observer` of plain lines, each with its row; the end of the log if one fails.

    On a service that folds logs, the whole log of each row when it ends.
    """

    def __init__(self, stream: TextIO, total: int, fold: Fold) -> None:
        self._stream = stream
        self._total = total
        self._fold = fold
        self._ended = 0
        self._logs: dict[str, list[str]] = {}
        self._recent: dict[str, deque[str]] = {}
        self._waiting: set[str] = set()

    def say(self, text: str) -> None:
        """Write something the user should know, on lines of its own."""
        self._write(shown(text))

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def begin(self, work: Work) -> None:
        """See `Observer`."""
        expected = f", about {duration(work.expected)}" if work.expected else ""
        self.say(f"{work.name}: begins{expected}")

    def event(self, work: Work, event: Event | Again) -> None:
        """See `Observer`."""
        if isinstance(event, Again):
            self.say(f"{work.name}: {again_text(event)}")
            self._log(work, f"-- {again_text(event)}")
        elif isinstance(event, Built):
            self.say(f"{work.name}: built {event.package.name} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            for line in self._recent.pop(work.name, ()):
                self._write(f"  {shown_log(line)}")
            self.say(f"{work.name}: {event.output} failed: {event.reason}")
        elif not isinstance(event, Started):
            if event.stage == "feedstock-tools":
                self.say(f"{work.name}: {event.text.removeprefix('-- ')}")
            self._log(work, event.text)

    def _log(self, work: Work, text: str) -> None:
        if self._fold.begin:
            self._logs.setdefault(work.name, []).append(text)
        elif text.strip():
            recent = self._recent.setdefault(work.name, deque(maxlen=_LAST_LINES))
            recent.extend(text.rstrip().splitlines())

    def end(self, work: Work, built: BuiltRow) -> None:
        """See `Observer`."""
        self._ended += 1
        how = "failed" if built.failed else "done"
        if self._fold.begin:
            self.say(f"{self._fold.begin}== {described(work)}: {how}")
            self._write(shown_log("\n".join(self._logs.pop(work.name, []))))
            self.say(self._fold.end)
        self.say(f"{work.name}: {how} ({self._ended} of {self._total})")

    def progress(self, progress: Progress) -> None:
        """See `Observer`: a row that waits for another run is reported once, the others when something changes."""
        for name in progress.elsewhere:
            if name not in self._waiting:
                self._waiting.add(name)
                self.say(f"{name}: waits for another run, which builds a part of it")

    def ending(self, builds: int) -> None:
        """See `Observer`."""
        self.say(ending_text(builds))


class LiveTable:
    """An `Observer` that keeps a table of the running builds on a terminal. Use it as a context."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, refresh_per_second=5, transient=True)
        self._now: dict[str, tuple[Work, str]] = {}
        self._recent: dict[str, deque[str]] = {}

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

    def begin(self, work: Work) -> None:
        """See `Observer`."""
        self._now[work.name] = (work, "")
        self._recent[work.name] = deque(maxlen=_LAST_LINES)

    def event(self, work: Work, event: Event | Again) -> None:
        """See `Observer`."""
        if isinstance(event, Started):
            self._now[work.name] = (work, event.output)
        elif isinstance(event, Again):
            self._recent[work.name].append(f"-- {again_text(event)}")
        elif isinstance(event, Built):
            self.say(f"built {event.package.name} in {duration(event.seconds)}")
        elif isinstance(event, Failed):
            self.say("\n".join([*self._recent[work.name], f"{work.name}: {event.output} failed: {event.reason}"]))
        elif event.text.strip():
            self._recent[work.name].extend(event.text.rstrip().splitlines())

    def end(self, work: Work, built: BuiltRow) -> None:
        """See `Observer`."""
        self._now.pop(work.name, None)

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""
        self._live.update(self._table(progress))

    def ending(self, builds: int) -> None:
        """See `Observer`."""
        self.say(ending_text(builds))

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
                work, output = self._now[name]
                yield name, output, duration(elapsed), duration(work.expected) if work.expected else "-"
        for name in progress.elsewhere:
            yield name, "waits for another run", "", ""
