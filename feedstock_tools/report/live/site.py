"""The pages about a feedstock's builds: its matrix, the running builds as JSON, and logs.

Nothing that a request says becomes a path: a log is one that the ledger names, in the folder of logs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from feedstock_tools.builds.ledger.records import BuildRecord
from feedstock_tools.builds.matrix.matrix import Matrix, read_matrix
from feedstock_tools.builds.matrix.runs import LiveRow, LiveRun, read_runs
from feedstock_tools.builds.plan.workspace import Workspace, workspace_of
from feedstock_tools.digests import digest_of_values
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.reading import open_file
from feedstock_tools.report.live.server import Answer
from feedstock_tools.report.matrix.page import live_page
from feedstock_tools.report.matrix.view import lines, printable
from feedstock_tools.units import size_text
from feedstock_tools.wording import duration, moment

#: A matrix is read again after this time in seconds, but not before this multiple of the time that reading it took.
_FRESH, _REST = 1.0, 10.0
#: Bytes of a whole log, of which only the end is shown beyond that, and of a piece of one that grows.
_LARGEST_LOG, _PIECE = 4 << 20, 64 << 10
_LOGS = "/log/"
_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Read:
    """The matrix at a moment, and the records of its builds by row (the newest) and by log."""

    matrix: Matrix
    of_row: Mapping[str, BuildRecord]
    logs: frozenset[str]


class StatusSite:
    """The live status of some configurations of a feedstock; see `Site`."""

    def __init__(self, workspace: Workspace, names: Sequence[str]) -> None:
        """Prepare it.

        Args:
            names: of the configurations; all without one.
        """
        self._workspace = workspace
        self._names = names
        self._turn = threading.Lock()
        self._last: _Read | None = None
        self._until = 0.0

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """See `Site`."""
        try:
            if path == "/":
                page = live_page(self._read().matrix)
                return Answer(HTTPStatus.OK, "text/html; charset=utf-8", page.text.encode(), page.policy)
            if path == "/status.json":
                return _json(status_json(self._read().matrix, self._runs(), self._read().of_row))
            if path.startswith(_LOGS):
                return self._log(path.removeprefix(_LOGS), query.get("from"))
        except FeedstockError as error:
            text = printable(str(error))
            if path == "/status.json":
                return _json({"error": text})
            return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, text)
        return Answer.text(HTTPStatus.NOT_FOUND, "there is no such page")

    def _read(self) -> _Read:
        """The matrix as it is now, or was a moment ago.

        Raises:
            FeedstockError: the feedstock, which people may be editing, or the ledger cannot be read.
        """
        with self._turn:
            if self._last is None or time.monotonic() >= self._until:
                began = time.monotonic()
                self._last = _read(self._workspace, self._names)
                self._until = time.monotonic() + max(_FRESH, _REST * (time.monotonic() - began))
            return self._last

    def _runs(self) -> tuple[LiveRun, ...]:
        return read_runs(self._workspace.artifacts)

    def _log(self, name: str, offset: str | None) -> Answer:
        """A log as text: the whole one, or a piece of it from an offset on as JSON."""
        read = self._read()
        if name not in read.logs or (offset is not None and not _is_offset(offset)):
            return Answer.text(HTTPStatus.NOT_FOUND, "there is no such log")
        artifacts = self._workspace.artifacts
        try:
            with open_file(artifacts.root / name, within=artifacts.logs) as file:
                size = file.seek(0, 2)
                begin = max(0, size - _LARGEST_LOG) if offset is None else _from(int(offset), size)
                file.seek(begin)
                content = file.read(_LARGEST_LOG if offset is None else _PIECE)
        except (InputError, OSError):
            return Answer.text(HTTPStatus.NOT_FOUND, "the log is gone")
        if offset is None:
            left_out = f"… {size_text(begin)} of earlier lines are left out …\n" if begin else ""
            return Answer.text(HTTPStatus.OK, left_out + _text(content))
        if len(content) < _PIECE or b"\n" in content:  # a line in two pieces could hide its control characters
            content = content[: content.rfind(b"\n") + 1]
        return _json({"from": begin, "next": begin + len(content), "size": size, "text": _text(content)})


def status_json(matrix: Matrix, runs: Sequence[LiveRun], of_row: Mapping[str, BuildRecord]) -> dict[str, Any]:
    """The current state: the runs, the rows that no run here knows of, and a version that changes with the matrix.

    Args:
        of_row: row → its newest build.
    """
    known = {row.row for run in runs for row in run.rows}
    others = [record for name, record in of_row.items() if name not in known and _is_running(matrix, record)]
    return {
        "feedstock": printable(matrix.feedstock),
        "at": matrix.at,
        "version": digest_of_values(
            [[line.title, line.state.state, line.done, line.total, line.ended, *line.logs] for line in lines(matrix)]
        ),
        "runs": [_run_json(run, of_row) for run in runs],
        "elsewhere": [
            {"row": record.row, "host": record.machine, "output": record.output, "log": _address(record)}
            for record in others
        ],
    }


def _is_running(matrix: Matrix, record: BuildRecord) -> bool:
    outputs = (output for state in matrix.configurations for output in state.outputs)
    return any(output.state == "running" and output.record and output.record.id == record.id for output in outputs)


def _run_json(run: LiveRun, of_row: Mapping[str, BuildRecord]) -> dict[str, Any]:
    building = [row.host for row in run.rows]
    return {
        "command": printable(run.command),
        "machine": printable(run.machine),
        "began": moment(run.began),
        "done": run.done,
        "failed": run.failed,
        "building": len(run.rows),
        "waiting": run.waiting,
        "left": duration(run.remaining),
        "ends": moment(run.ends) if run.ends else "",
        "rows": [_row_json(row, of_row) for row in run.rows],
        "hosts": [
            {
                "name": printable(host.name),
                "present": host.present,
                "cores": host.cores,
                "memory": size_text(host.memory) if host.memory else "",
                "jobs": host.jobs,
                "building": building.count(host.name),
            }
            for host in run.hosts
        ],
    }


def _row_json(row: LiveRow, of_row: Mapping[str, BuildRecord]) -> dict[str, Any]:
    record = of_row.get(row.row)
    return {
        "row": printable(row.row),
        "configuration": printable(row.configuration),
        "host": printable(row.host),
        "took": duration(row.seconds),
        "output": printable(row.output),
        "log": _address(record) if record else None,
    }


def _read(workspace: Workspace, names: Sequence[str]) -> _Read:
    """The matrix of a feedstock as its files are now."""
    now = workspace_of(
        workspace.feedstock,
        workspace.artifacts.root,
        workspace.channels,
        workspace.machine,
        None,
        workspace.bounds,
    )
    matrix = read_matrix(now, now.chosen(names))
    deciding = [output.record for state in matrix.configurations for output in state.outputs if output.record]
    records = sorted([*deciding, *matrix.builds], key=lambda record: record.id or 0)
    logs = {record.log for record in records} | {test.log for test in matrix.tests}
    return _Read(matrix, {record.row: record for record in records}, frozenset(logs - {""}))


def _address(record: BuildRecord) -> str:
    """The address of a log as the page has it."""
    return quote(f"{_LOGS.lstrip('/')}{record.log}")


def _is_offset(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 20


def _from(offset: int, size: int) -> int:
    """Where a piece begins; a negative offset counts from the end."""
    return min(offset, size) if offset >= 0 else max(0, size + offset)


def _text(content: bytes) -> str:
    """What a build printed, without what a terminal or a page would act on."""
    return printable(content.decode("utf-8", errors="replace"))


def _json(content: Mapping[str, Any]) -> Answer:
    return Answer(HTTPStatus.OK, _JSON, json.dumps(content).encode())
