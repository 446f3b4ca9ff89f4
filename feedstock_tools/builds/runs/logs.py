"""Log files of builds and tests: lines with their time, the bytes as they were printed, and of a flood both ends."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import FileIO
from itertools import chain
from pathlib import Path
from types import TracebackType

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Log, Output, Started
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.plan.hosts import LOG_LIMIT
from feedstock_tools.errors import WorkError
from feedstock_tools.redaction import Redaction, known_secrets
from feedstock_tools.wording import size_text

#: The largest share of the end in a file that is too small for its log, and its most bytes, which are held in memory.
_SHARE_OF_END = 4
LONGEST_END = 16 << 20
#: Bytes that are joined before they enter the end.
_BLOCK = 1 << 16
_KEPT = 200
#: Output of at least as many bytes at once is a flood: only its first line gets the time, which all of them share.
_FLOOD = 1 << 16
#: How often the end of a flood is read, in seconds.
_SECONDS = 1.0
_OURS = "feedstock-tools"


class Tail:
    """The last bytes of an output, and the number of bytes before them that are gone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._blocks: deque[bytes | bytearray] = deque()
        self.dropped = 0

    def add(self, content: bytes) -> None:
        if self._blocks and isinstance(self._blocks[-1], bytearray) and len(self._blocks[-1]) < _BLOCK:
            self._blocks[-1] += content
        else:
            self._blocks.append(bytearray(content) if len(content) < _BLOCK else content)
        self._size += len(content)
        while len(self._blocks) > 1 and self._size - len(self._blocks[0]) >= self._most:
            gone = len(self._blocks.popleft())
            self._size -= gone
            self.dropped += gone

    def skip(self, size: int) -> None:
        """More output that is gone, and so is what came before it."""
        self.dropped += self._size + size
        self._size = 0
        self._blocks.clear()

    def parts(self) -> Iterator[bytes]:
        """The last bytes in parts, once; after dropped ones they begin with a line.

        `dropped` is complete after the first part.
        """
        while self._blocks and (self._size > self._most or self.dropped):
            block = self._blocks.popleft()
            begin = block.find(b"\n", max(0, self._size - self._most)) + 1 or len(block)
            self._size -= len(block)
            self.dropped += begin
            if begin < len(block):
                yield bytes(block[begin:])
                break
        while self._blocks:
            yield bytes(self._blocks.popleft())
        self._size = 0


class HeadAndTail:
    """The first and the last part of an output in memory, with a line between them that says how much is missing."""

    def __init__(self, most: int) -> None:
        self._room = most // 2
        self._begin: list[bytes] = []
        self._end = Tail(most // 2)

    def add(self, content: bytes) -> None:
        if self._room:
            self._begin.append(content[: self._room])
            content, self._room = content[self._room :], max(0, self._room - len(content))
        if content:
            self._end.add(content)

    def read(self) -> bytes:
        end = b"".join(self._end.parts())
        return b"".join([*self._begin, _left_out(self._end.dropped), end])


def _left_out(dropped: int) -> bytes:
    if not dropped:
        return b""
    return f"\n-- feedstock-tools: {size_text(dropped)} of the log are left out here\n".encode()


class LogFile:
    """A new log file. Use it as a context.

    The file gets the output as it comes. Of more than `limit` bytes it keeps the first and the last part, with a line
    between them that says how much was left out; the last part is written at the end.

    If the folder is removed while a build runs, the file stays open and the build goes on.

    Attributes:
        path: its path.
        last: the last lines, for messages.
    """

    def __init__(self, logs: Path, name: str, limit: int = LOG_LIMIT) -> None:
        """Begin a file in a folder, named after `name` and the time.

        Raises:
            WorkError: the file cannot be written there.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        # A file name has at most 255 bytes, and conda-smithy's names of configurations can be nearly as long.
        names = [
            f"{name[:200]}-{stamp}{mark}.log" for mark in ("", *(f"-{os.getpid()}-{number}" for number in range(99)))
        ]
        self.last = LastLines(_KEPT)
        end = min(limit // _SHARE_OF_END, LONGEST_END)
        self._room = limit - end
        self._end = Tail(end)
        self._begins_line = True
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self.path, self._stream = _new_file([logs / name for name in names])
        except OSError as error:
            raise WorkError(f"cannot write logs here: {error.strerror or error}", path=logs) from error

    def __enter__(self) -> LogFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            parts = self._end.parts()
            first = next(parts, b"")
            self._put(_left_out(self._end.dropped))
            for part in chain([first], parts):
                self._put(part)
        except WorkError:
            if error is None:
                raise
        finally:
            self._stream.close()

    def output(self, content: bytes, stage: str = "") -> None:
        """What a program printed: lines, each with the time of day (UTC) and the stage; of a flood the first."""
        if not content:
            return
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.last.add(content)
        head = f"{datetime.now(UTC):%H:%M:%S.%f}"[:-3] + (f" [{stage}] " if stage else " ")
        mark = head.encode(errors="replace")
        if len(content) >= _FLOOD:
            if self._begins_line:
                self._keep(mark)
            self._begins_line = content.endswith(b"\n")
            self._keep(content)
            return
        # Every line but the first is marked with the line feed before it; after the last one comes a mark too many.
        marked = content.replace(b"\n", b"\n" + mark)
        if self._begins_line:
            self._keep(mark)
        self._begins_line = content.endswith(b"\n")
        self._keep(marked, len(marked) - len(mark) if self._begins_line else len(marked))

    @property
    def is_full(self) -> bool:
        """Whether only the end of further output is kept."""
        return not self._room

    def skip(self, size: int) -> None:
        """Output that is left out, of a file that is full; more than the end of a file follows."""
        self._end.skip(size)
        self._begins_line = True

    def message(self, text: str, stage: str = "") -> None:
        """A message of ours or of an engine, on lines of its own."""
        if not self._begins_line:
            self.output(b"\n")
        lines = "\n".join(text.splitlines() or [""])
        self.output(f"{lines}\n".encode(errors="replace"), stage)

    def write(self, event: Event) -> None:
        """One event."""
        if isinstance(event, Output):
            self.output(event.content, event.stage)
        elif isinstance(event, Log):
            self.message(event.text, event.stage)
        elif isinstance(event, Started):
            self.message(f"building {event.output}", _OURS)
        elif isinstance(event, Built):
            self.message(f"built {event.shown} in {event.seconds:.2f} s", _OURS)
        elif isinstance(event, Failed):
            self.message(f"{event.output} failed: {event.reason}", _OURS)

    def _keep(self, content: bytes, size: int | None = None) -> None:
        """Write as much as there is room for; the rest belongs to the end.

        Args:
            size: the number of bytes that count; default: all.
        """
        view = memoryview(content)[:size]
        if self._room:
            written = min(self._room, len(view))
            self._put(view[:written])
            self._room -= written
            view = view[written:]
        if view:
            self._end.add(bytes(view))

    def _put(self, content: bytes | memoryview) -> None:
        view = memoryview(content)
        try:
            while view:
                view = view[self._stream.write(view) :]
        except OSError as error:
            raise WorkError(f"cannot write the log: {error.strerror or error}", path=self.path) from error


def _new_file(paths: Sequence[Path]) -> tuple[Path, FileIO]:
    """The first path at which there is no file yet, which is created."""
    for path in paths[:-1]:
        with suppress(FileExistsError):
            return path, FileIO(path, "x")
    return paths[-1], FileIO(paths[-1], "x")


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
        self._last = Tail(LONGEST_END)
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
        self._last = Tail(LONGEST_END)
        self._since = time.monotonic()


def _without_secrets(event: Event, redaction: Redaction) -> Event:
    if isinstance(event, Log):
        return replace(event, text=redaction.text(event.text))
    if isinstance(event, Failed):
        return replace(event, reason=redaction.text(event.reason))
    return event
