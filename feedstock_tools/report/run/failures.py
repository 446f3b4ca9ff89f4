"""The output of `build --quiet`: what failed, with the end of its log, and the table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from feedstock_tools.builds.engines.contract import Event, Failed, Log, Output
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.runs.retries import NextAttempt
from feedstock_tools.report.run.plain import Terminal
from feedstock_tools.wording import shown_log

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.work import Work
    from feedstock_tools.builds.runs.row import BuiltRow

#: The number of lines shown from the log of a failed build.
_LAST_LINES = 30


class Failures(Terminal):
    """An `Observer` of failures alone, for any number of rows."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._recent: dict[str, LastLines] = {}

    def say(self, text: str) -> None:
        """Leave out a note."""

    def begin(self, work: Work) -> None:
        """See `Observer`."""
        self._recent[work.name] = LastLines(_LAST_LINES)

    def event(self, work: Work, event: Event | NextAttempt) -> None:
        """See `Observer`."""
        if isinstance(event, Output):
            self._recent[work.name].add(event.content)
        elif isinstance(event, Log):
            self._recent[work.name].add(f"{event.text.rstrip()}\n".encode(errors="replace"))
        elif isinstance(event, Failed):
            for line in self._recent[work.name]:
                if line.strip():
                    self._write(f"  {shown_log(line)}")
            self.answer(f"{work.name}: {event.output} failed: {event.reason}")

    def end(self, work: Work, built: BuiltRow) -> None:
        """See `Observer`."""
        self._recent.pop(work.name, None)
