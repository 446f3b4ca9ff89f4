"""Duration and memory of earlier builds, from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from feedstock_tools.builds.ledger import BuildRecord, Ledger

__all__ = ["History"]

#: The number of recent builds that count.
_LAST = 5


@dataclass(frozen=True, slots=True)
class History:
    """The last finished builds by row and output, and by output alone, the oldest first."""

    of_row: dict[tuple[str, str], list[BuildRecord]]
    of_output: dict[str, list[BuildRecord]]

    @classmethod
    def of(cls, ledger: Ledger, places: Iterable[tuple[str, str]]) -> History:
        """The history of some places, each a row and an output; an output alone counts where its row has none.

        Raises:
            WorkError: the ledger cannot be read.
        """
        wanted = list(dict.fromkeys(places))
        history = cls({}, {})
        for record in ledger.done_in(wanted, _LAST):
            history.of_row.setdefault((record.row, record.output), []).append(record)
        for output in {output for row, output in wanted if (row, output) not in history.of_row}:
            history.of_output[output] = list(ledger.done_of_output(output, _LAST))
        return history

    def seconds(self, row: str, output: str) -> float | None:
        """The expected duration of an output: the median of its last builds; None if unknown."""
        taken = [record.seconds for record in self._last(row, output) if record.seconds is not None]
        return median(taken) if taken else None

    def memory(self, row: str, outputs: Sequence[str]) -> int | None:
        """The highest peak memory of builds of these outputs, in bytes; None if unknown."""
        peaks = [record.peak_memory for output in outputs for record in self._last(row, output)]
        return max((peak for peak in peaks if peak), default=None)

    def _last(self, row: str, output: str) -> list[BuildRecord]:
        return self.of_row.get((row, output)) or self.of_output.get(output, [])
