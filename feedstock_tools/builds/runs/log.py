"""The log file of a row's build: complete, and each line with its time."""

from __future__ import annotations

import os
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from feedstock_tools.builds.engines.contract import Built, Event, Failed, Log, Started
from feedstock_tools.errors import WorkError

__all__ = ["RowLog"]

_KEPT = 200


class RowLog:
    """A new log file, named after the row and the time; `path` is its path. `last` are its last lines.

    If the folder is removed while a build runs, the file stays open and the build goes on.
    """

    def __init__(self, logs: Path, row: str) -> None:
        """Begin a file.

        Raises:
            WorkError: the file cannot be written there.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        # A file name has at most 255 bytes, and conda-smithy's names of configurations can be nearly as long.
        names = [
            f"{row[:200]}-{stamp}{mark}.log" for mark in ("", *(f"-{os.getpid()}-{number}" for number in range(99)))
        ]
        self.last: deque[str] = deque(maxlen=_KEPT)
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self.path = next(logs / name for name in names if not (logs / name).exists())
            self._stream = self.path.open("x", encoding="utf-8")
        except OSError as error:
            raise WorkError(f"cannot write logs here: {error.strerror or error}", path=logs) from error

    def __enter__(self) -> RowLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def write(self, event: Event) -> None:
        """One event: the time of day (UTC), the engine's current step, and the text.

        Raises:
            WorkError: the disk is full.
        """
        stage, text = _worded(event)
        time = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        lines = text.splitlines() or [""]
        self.last.extend(lines)
        try:
            for line in lines:
                self._stream.write(f"{time} {f'[{stage}] ' if stage else ''}{line}\n")
            self._stream.flush()
        except OSError as error:
            raise WorkError(f"cannot write the log: {error.strerror or error}", path=self.path) from error


def _worded(event: Event) -> tuple[str, str]:
    """The stage and the text of an event."""
    if isinstance(event, Log):
        return event.stage, event.text
    if isinstance(event, Started):
        return "feedstock-tools", f"building {event.output}"
    if isinstance(event, Built):
        return "feedstock-tools", f"built {event.package.name} in {event.seconds:.2f} s"
    assert isinstance(event, Failed)  # noqa: S101  (the last of the kinds)
    return "feedstock-tools", f"{event.output} failed: {event.reason}"
