"""What an observer sees of a row whose programs print more than people read."""

from __future__ import annotations

import time
from collections.abc import Iterator

from feedstock_tools.builds.engines.contract import Event, Log, Output
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.runs.retries import NextAttempt
from feedstock_tools.units import size_text

#: The output of a row that is shown at once, and its growth per second, in bytes: more than a terminal shows.
_AT_ONCE = 4 << 20
_PER_SECOND = 1 << 20
_LAST_LINES = 20


class Shown:
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
