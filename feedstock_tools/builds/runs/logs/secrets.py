"""The events of a build without the secrets of this machine and those in URLs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from feedstock_tools.builds.engines.contract import Event, Failed, Log, Output
from feedstock_tools.builds.runs.logs.log import LONGEST_END, Ends
from feedstock_tools.errors import WorkError
from feedstock_tools.redaction import Redaction, known_secrets

#: How often the end of a flood is read, in seconds.
_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Output that was not read, in bytes; more than the end of a log follows it."""

    size: int


def without_secrets(
    events: Iterable[Event], machine: Mapping[str, str], is_full: Callable[[], bool] = lambda: False
) -> Iterator[Event | Skipped]:
    """The events with stars in place of secrets, also of those that the output of programs has in two parts.

    Args:
        machine: the environment of the machine.
        is_full: whether the log is full, so that only the end of further output counts and the rest is not read.
    """
    redaction = Redaction(known_secrets(machine).values())
    flood = _Flood(redaction)
    ended: WorkError | None = None
    try:
        for event in events:
            if not isinstance(event, Output):
                yield from flood.end()
                yield _without_secrets(event, redaction)
            elif is_full():
                yield from flood.take(event)
            elif content := redaction.feed(event.content):
                flood.stage = event.stage
                yield replace(event, content=content)
    except WorkError as error:
        ended = error
    yield from flood.end()
    if ended is not None:
        raise ended


class _Flood:
    """Output beyond what a log has room for: only the last part of what comes within a second is read."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._last = Ends(LONGEST_END)
        self._since = time.monotonic()
        self.stage = ""

    def take(self, event: Output) -> Iterator[Event | Skipped]:
        """One more block; from time to time, the last ones."""
        self.stage = event.stage
        self._last.add(event.content)
        if time.monotonic() - self._since > _SECONDS:
            yield from self._read()

    def end(self) -> Iterator[Event | Skipped]:
        """The rest, at the end of an output."""
        yield from self._read()
        if rest := self._redaction.flush():
            yield Output(rest, self.stage)

    def _read(self) -> Iterator[Event | Skipped]:
        parts = self._last.parts()
        first = next(parts, b"")
        if self._last.dropped:
            yield Skipped(self._last.dropped + self._redaction.discard())
        for part in chain([first], parts):
            if content := self._redaction.feed(part):
                yield Output(content, self.stage)
        self._last = Ends(LONGEST_END)
        self._since = time.monotonic()


def _without_secrets(event: Event, redaction: Redaction) -> Event:
    if isinstance(event, Log):
        return replace(event, text=redaction.text(event.text))
    if isinstance(event, Failed):
        return replace(event, reason=redaction.text(event.reason))
    return event
