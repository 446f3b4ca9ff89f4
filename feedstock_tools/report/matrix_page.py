"""The matrix as one HTML page that fetches nothing: filters, packages, logs, and a picture of the builds over time.

Names, reasons and logs come from builds and are not trusted: the template escapes everything, and the page's
policy allows no script but its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from feedstock_tools.builds.ledger.records import BuildRecord
from feedstock_tools.builds.matrix.live import LiveRun
from feedstock_tools.builds.matrix.matrix import Matrix, OutputState
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.matrix import Line, accelerator, by_state, groups, lines, log_file, printable
from feedstock_tools.report.run import comparison_words
from feedstock_tools.report.timeline import draw, jobs_of

#: The limits of a log quoted in the page: bytes and number of its last lines.
_TAIL_BYTES = 12_000
_TAIL_LINES = 60
#: The states whose logs are quoted in the page.
_SHOWN = ("failed", "interrupted", "running")
#: An open page that follows builds reloads itself after this time in seconds.
RELOADED = 5


@dataclass(frozen=True, slots=True)
class LogView:
    """A log file: its name, its address from the page (None if it is gone), and its last lines if quoted."""

    name: str
    address: str | None
    tail: str


def page(matrix: Matrix, folder: Path, runs: Sequence[LiveRun] | None = None) -> str:
    """The page, with links to logs as seen from its folder.

    Args:
        runs: what goes on now, for a page that reloads itself; None for one that does not.
    """
    table_lines = lines(matrix)
    titles = {row.name: row.short_name or row.name for each in matrix.configurations for row in each.configuration.rows}
    return html_page(
        "status",
        styles=("status",),
        scripts=("filter", "status"),
        reloaded=None if runs is None else RELOADED,
        runs=runs or (),
        elsewhere=_elsewhere(matrix, runs or ()),
        links=_links_of_rows(matrix, folder) if runs is not None else {},
        matrix=matrix,
        counts=by_state(table_lines),
        shares=tuple(_shares(by_state(table_lines))),
        platforms=sorted({line.state.configuration.platform for line in table_lines}),
        lines=[_line_view(matrix, line, folder) for line in table_lines],
        titles=titles,
        picture=draw(
            [
                replace(job, row=titles.get(job.row, job.row))
                for job in jobs_of(matrix.builds, _alive(matrix), matrix.at)
            ]
        ),
    )


def _elsewhere(matrix: Matrix, runs: Sequence[LiveRun]) -> list[BuildRecord]:
    """The running builds that none of the runs follows, such as those of a program that uses the library."""
    followed = {row.row for run in runs for row in run.rows}
    outputs = (output for state in matrix.configurations for output in state.builds if output.state == "running")
    records = {output.record.row: output.record for output in outputs if output.record}
    return [record for row, record in records.items() if row not in followed]


def _links_of_rows(matrix: Matrix, folder: Path) -> dict[str, str | None]:
    """Row → the address of the log of its newest build."""
    deciding = [output.record for state in matrix.configurations for output in state.builds if output.record]
    newest = {record.row: record for record in sorted([*deciding, *matrix.builds], key=lambda record: record.id or 0)}
    return {row: _link(matrix, record, folder) for row, record in newest.items()}


def _alive(matrix: Matrix) -> frozenset[int | None]:
    """The builds whose runs are alive."""
    outputs = (output for state in matrix.configurations for output in state.builds)
    return frozenset(output.record.id for output in outputs if output.record and output.state == "running")


def _shares(counts: dict[str, int]) -> Iterator[tuple[str, float, float]]:
    """State, beginning and width of each part of a bar that is 100 wide."""
    total, begin = sum(counts.values()) or 1, 0.0
    for state, count in sorted(counts.items(), key=lambda item: item[0] != "done"):
        width = 100 * count / total
        yield state, round(begin, 3), round(width, 3)
        begin += width


def _line_view(matrix: Matrix, line: Line, folder: Path) -> dict[str, Any]:
    configuration = line.state.configuration
    shown = {output.record.log for output in line.state.builds if output.record and output.state in _SHOWN}
    return {
        "line": line,
        "configuration": configuration,
        "accelerator": accelerator(configuration),
        "reasons": [(group.state, group.reason, len(group.outputs)) for group in groups([line])],
        "outputs": [
            (output, output.record, _link(matrix, output.record, folder), _compared(matrix, output))
            for output in line.state.outputs
        ],
        "logs": [_log_view(matrix, log, folder, shown=log in shown) for log in line.logs],
        "words": " ".join(
            [line.title, configuration.name, *{output.output.name for output in line.state.outputs}]
        ).lower(),
    }


def _compared(matrix: Matrix, output: OutputState) -> str:
    """How the package compares with a second build, in words; empty without one."""
    comparisons = matrix.compared(output.record) if output.record and output.state == "done" else ()
    return comparison_words(comparisons[-1]) if comparisons else ""


def _link(matrix: Matrix, record: BuildRecord | None, folder: Path) -> str | None:
    path = log_file(matrix.artifacts, record.log) if record else None
    return _relative(folder, path) if path else None


def _log_view(matrix: Matrix, log: str, folder: Path, *, shown: bool) -> LogView:
    path = log_file(matrix.artifacts, log)
    address = _relative(folder, path) if path else None
    return LogView(Path(log).name, address, _tail(path) if shown and path else "")


def _relative(folder: Path, path: Path) -> str:
    """The address of a log from a page in a folder."""
    try:
        relative = os.path.relpath(path, folder)
    except ValueError:  # on Windows, another drive
        return path.as_uri()
    return quote(f"./{Path(relative).as_posix()}")


def _tail(path: Path) -> str:
    """The last lines of a log, without terminal codes."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = stream.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
    return printable("\n".join(text.split("\n")[-_TAIL_LINES:])).strip("\n")
