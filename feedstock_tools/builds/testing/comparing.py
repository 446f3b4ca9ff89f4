"""The results of benchmarks, build by build, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from feedstock_tools.builds.ledger import Ledger, TestRecord
from feedstock_tools.feedstock.layout import Artifacts


@dataclass(frozen=True, slots=True)
class Figure:
    """The newest value of one figure for one package on one machine.

    `ratio` is to the first package that has the figure in the same unit on such a machine, which is 1.
    """

    name: str
    unit: str
    where: str
    package: str
    value: float
    ratio: float | None
    started: str


def figures_of(artifacts: Artifacts) -> tuple[Figure, ...]:
    """The figures in the ledger of a folder of artifacts; none without a ledger.

    Raises:
        WorkError: the ledger cannot be read.
    """
    if not artifacts.ledger.is_file():
        return ()
    with Ledger(artifacts.ledger) as ledger:
        return compared(ledger.tests())


def compared(tests: Sequence[TestRecord]) -> tuple[Figure, ...]:
    """The figures of passed tests, with comparable ones next to each other.

    Args:
        tests: the ledger's tests, the oldest first.
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
    figures = []
    for (name, unit, where, package), (value, started) in sorted(newest.items()):
        base = first.setdefault((name, unit, where), value)
        figures.append(Figure(name, unit, where, package, value, value / base if base else None, started))
    return tuple(figures)
