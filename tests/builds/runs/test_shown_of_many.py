"""The display of a run of several rows: lines without a terminal, and a table that fits a narrow terminal."""

import io

import pytest

from feedstock_tools.builds.engines.contract import Failed, Log, Started
from feedstock_tools.builds.runs.observer import Progress
from feedstock_tools.report.observers import UNFOLDED, Lines, LiveTable
from tests.support.rows import made_up_row

WORK = made_up_row("linux_64_cuda_compiler_version11.8_py3.11")


def test_lines_show_the_end_of_a_log_that_ends_in_a_failure() -> None:
    stream = io.StringIO()
    lines = Lines(stream, 1, UNFOLDED)
    for number in range(100):
        lines.event(WORK, Log(f"line {number}"))
    assert not stream.getvalue()

    lines.event(WORK, Failed("libdemo", "its build script failed"))

    shown = stream.getvalue().splitlines()
    assert "  line 5" not in shown
    assert shown[-2:] == ["  line 99", f"{WORK.title}: libdemo failed: its build script failed"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_narrow_terminal_cuts_names_and_not_times(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    with LiveTable(stream) as table:
        table.begin(WORK)
        table.event(WORK, Started("libdemo"))
        table._console.print(table._table(Progress(0, 0, 1, {WORK.name: 83.0})))

    (row,) = [line for line in stream.getvalue().splitlines() if line.startswith("linux_64_cuda")]
    assert row.split()[-5:] == ["1", "min", "23", "s", "-"]
    assert len(row) <= columns
