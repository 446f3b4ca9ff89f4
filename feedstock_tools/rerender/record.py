"""The outcomes of many rerenders in a file, a line of JSON each, so that an interrupted run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.rerender.many import OUTCOMES, RerenderedFeedstock


class Record:
    """An open file of outcomes: those of earlier runs, and a place for new ones."""

    def __init__(self, stream: IO[bytes], earlier: Iterable[RerenderedFeedstock]) -> None:
        """`stream` stands at its end."""
        self._stream = stream
        self.earlier = {_place(outcome.feedstock): outcome for outcome in earlier if outcome.outcome != "failed"}

    def has(self, feedstock: Path) -> bool:
        """Whether an earlier run finished a feedstock; failed ones are tried again."""
        return _place(feedstock) in self.earlier

    def add(self, found: RerenderedFeedstock) -> None:
        """Append an outcome; it is in the file when this returns.

        Raises:
            WorkError: the file cannot be written.
        """
        line = json.dumps({**asdict(found), "feedstock": _place(found.feedstock)})
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            raise WorkError(f"cannot be written: {error.strerror or error}", path=Path(self._stream.name)) from error


@contextmanager
def opened_record(path: Path, options: Mapping[str, str | None]) -> Iterator[Record]:
    """Open the record of a run, or begin one.

    Args:
        options: what the outcomes depend on besides the feedstocks; a record belongs to one set of them.

    Raises:
        InputError: the file is something else, or belongs to other options.
        WorkError: it cannot be read or written.
    """
    try:
        with path.open("a+b") as stream:
            stream.seek(0)
            complete = stream.read().rpartition(b"\n")[0]
            first, *lines = complete.split(b"\n")
            if first:
                _check(path, first, options)
            stream.truncate(len(complete) + 1 if first else 0)  # without a line that was cut off
            if not first:
                stream.write(json.dumps({"options": dict(options)}).encode() + b"\n")
            yield Record(stream, [_outcome(path, number, line) for number, line in enumerate(lines, 2)])
    except OSError as error:
        raise WorkError(f"cannot be written: {error.strerror or error}", path=path) from error


def _check(path: Path, line: bytes, options: Mapping[str, str | None]) -> None:
    try:
        before = json.loads(line)["options"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not a record of rerenders", path=path, line=1, hint="Name a new file.") from error
    if before != dict(options):
        differ = sorted(key for key in options if not isinstance(before, dict) or before.get(key) != options[key])
        hint = "Name another file, or give the same options."
        raise InputError(f"belongs to a run with another {' and '.join(differ)}", path=path, line=1, hint=hint)


def _outcome(path: Path, number: int, line: bytes) -> RerenderedFeedstock:
    try:
        found = json.loads(line)
        changes = tuple((str(kind), str(name)) for kind, name in found["changes"])
        if found["outcome"] not in OUTCOMES:
            raise ValueError(found["outcome"])
        return RerenderedFeedstock(
            Path(found["feedstock"]),
            found["outcome"],
            str(found["reason"]),
            changes,
            tuple(map(str, found["notes"])),
            float(found["seconds"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not an outcome of a rerender", path=path, line=number, hint="Name a new file.") from error


def _place(feedstock: Path) -> str:
    return str(feedstock.resolve())
