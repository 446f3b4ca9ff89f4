"""Tests of built packages for a terminal and as values for JSON: progress, results, and a comparison of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.wording import shown, shown_log, table

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger import TestRecord
    from feedstock_tools.builds.testing.running import Gpus
    from feedstock_tools.builds.testing.tests import Figure


class TestLines:
    """A `TestWatcher` of plain lines; with several parallel tests, each line has its package."""

    __test__ = False

    def __init__(self, stream: TextIO, *, several: bool) -> None:
        self._stream = stream
        self._several = several

    def begin(self, package: str, gpus: Gpus | None) -> None:
        self._say(f"-- testing {package}{f' on {gpus}' if gpus else ''}")

    def line(self, package: str, text: str) -> None:
        lines = (f"{package}: {line}" if self._several else line for line in text.split("\n"))
        self._stream.write(f"{shown_log(chr(10).join(lines))}\n")
        self._stream.flush()

    def failed(self, package: str, reason: str, last_lines: Sequence[str]) -> None:
        self._say("\n".join([*last_lines, f"{package}: {reason}" if self._several else reason]))

    def _say(self, text: str) -> None:
        self._stream.write(f"{shown(text)}\n")
        self._stream.flush()


class TestFailures(TestLines):
    """A `TestWatcher` of failures alone, for --quiet."""

    def begin(self, package: str, gpus: Gpus | None) -> None: ...

    def line(self, package: str, text: str) -> None: ...


def tested_text(records: Sequence[TestRecord]) -> str:
    """A line for each package, and one for each figure of its benchmark."""
    lines = []
    for record in records:
        seconds = f" in {record.seconds:.2f} s" if record.seconds is not None else ""
        lines.append(f"{record.result}  {record.file.rpartition('/')[2]}{seconds}")
        if record.gpu:
            lines.append(f"    on {record.gpu}, driver {record.driver or 'of unknown version'}")
        lines += [f"    {name} {figure['value']:.6g} {figure['unit']}" for name, figure in record.benchmark.items()]
        lines += [f"    log: {record.log}"] if record.log else []
    return "\n".join(lines)


def tested_json(records: Sequence[TestRecord]) -> list[dict[str, Any]]:
    """The same for programs: the ledger's record of each test."""
    from feedstock_tools.builds.ledger.records import told_of

    return [told_of(record) for record in records]


def compared_text(figures: Sequence[Figure]) -> str:
    """A table, one line a figure."""
    if not figures:
        return "No benchmark has been run yet: `feedstock-tools test NAME --benchmark` runs one."
    rows = [
        (
            figure.name,
            figure.package,
            f"{figure.value:.6g}",
            figure.unit,
            "" if figure.ratio is None else f"{figure.ratio:.3f}",
            figure.where,
        )
        for figure in figures
    ]
    return table(("figure", "package", "value", "unit", "ratio", "on"), rows, right=frozenset({2, 4}))


def compared_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [asdict(figure) for figure in figures]
