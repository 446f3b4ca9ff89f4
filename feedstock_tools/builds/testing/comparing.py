"""What benchmarks measured, build by build, so that builds can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.builds.ledger import Ledger, TestRecord
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.wording import table

__all__ = ["Figure", "compared", "compared_json", "compared_text", "figures_of"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one package on one machine: the newest that was measured there.

    `ratio` is to the first package that has the figure in the same unit on such a machine, which is 1.
    """

    name: str
    unit: str
    where: str
    package: str
    value: float
    ratio: float | None
    started: str


def figures_of(feedstock: Path, output: Path | None = None) -> tuple[Figure, ...]:
    """The figures in the ledger of a feedstock, or of another folder of artifacts; none where there is no ledger.

    Raises:
        WorkError: the ledger cannot be read.
    """
    path = Artifacts(output or feedstock / "build_artifacts").ledger
    if not path.is_file():
        return ()
    with Ledger(path) as ledger:
        return compared(ledger.tests())


def compared(tests: Sequence[TestRecord]) -> tuple[Figure, ...]:
    """The figures of passed tests, those that can be compared with each other next to each other.

    Args:
        tests: the ledger's, the oldest first.
    """
    newest: dict[tuple[str, str, str, str], tuple[float, str]] = {}
    for test in tests:
        if test.result != "passed":
            continue
        where = test.gpu or test.machine
        package = PurePosixPath(test.file).name
        for name, figure in test.benchmark.items():
            newest[name, str(figure["unit"]), where, package] = (float(figure["value"]), test.started)
    first: dict[tuple[str, str, str], float] = {}
    found = []
    for (name, unit, where, package), (value, started) in sorted(newest.items()):
        base = first.setdefault((name, unit, where), value)
        found.append(Figure(name, unit, where, package, value, value / base if base else None, started))
    return tuple(found)


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
    return [{field: getattr(figure, field) for field in figure.__slots__} for figure in figures]
