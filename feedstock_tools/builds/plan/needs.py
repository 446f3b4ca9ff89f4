"""The resources that a row needs and its duration: from its spec, and from earlier builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from feedstock_tools.wording import size_of, time_of

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger import BuildRecord, Ledger

#: The margin on top of the memory of earlier builds: the next one differs a little.
_MARGIN = 1.25
#: The number of recent builds of an output that count.
_LAST = 5


@dataclass(frozen=True, slots=True)
class Declared:
    """The `needs` of a spec, in bytes and seconds; None if not set."""

    cores: int | None = None
    memory: int | None = None
    memory_per_job: int | None = None
    disk: int | None = None
    seconds: float | None = None
    gpu: bool = False
    labels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Declared:
        """From the keys and texts of a spec's `needs`."""
        sizes = {key: size_of(str(content[key])) for key in ("memory", "memory_per_job", "disk") if content.get(key)}
        cores = content.get("cores")
        return cls(
            cores=int(str(cores)) if cores else None,
            seconds=time_of(str(content["time"])) if content.get("time") else None,
            gpu=bool(content.get("gpu")),
            labels=frozenset(map(str, labels if isinstance(labels := content.get("labels"), list | tuple) else ())),
            **sizes,
        )


@dataclass(frozen=True, slots=True)
class Needs:
    """What a row asks of any host, in cores and bytes.

    Attributes:
        cores: as the spec declares them; None for an equal part of the host. `memory` likewise.
        gpu: it needs a GPU; `labels` are those that its host must have.
        remembered: the memory of earlier builds with a margin: the least for a row that does not declare its memory.
        platform: the target subdir.
        engine: the name of its engine, empty for any; `image` is the container image of that, None without a container.
        shared: the shared builds that its host must keep (`kept_name`), where hosts do not share a disk.
    """

    cores: int | None = None
    memory: int | None = None
    disk: int | None = None
    memory_per_job: int | None = None
    gpu: bool = False
    remembered: int | None = None
    labels: frozenset[str] = frozenset()
    platform: str = "noarch"
    engine: str = ""
    image: str | None = None
    shared: frozenset[str] = frozenset()

    def with_those_of(self, other: Needs) -> Needs:
        """What both ask of one host, one after the other."""
        return replace(
            self,
            cores=max(self.cores or 0, other.cores or 0) or None,
            memory=max(self.memory or 0, other.memory or 0) or None,
            gpu=self.gpu or other.gpu,
            labels=self.labels | other.labels,
        )


_ANY = Needs()


@dataclass(frozen=True, slots=True)
class History:
    """The last finished builds of each row and output, and of outputs in comparable rows, the oldest first."""

    of_row: dict[tuple[str, str], list[BuildRecord]]
    of_others: dict[tuple[str, str], list[BuildRecord]]

    @classmethod
    def of(cls, ledger: Ledger, places: Mapping[tuple[str, str], bool | None]) -> History:
        """The history of some places, each a row and an output; comparable rows count where its row has none.

        Args:
            places: whether its row is for a GPU, whose builds and those for CPUs take different times; None if the
                output is the same for both.
        """
        from feedstock_tools.rerender.configuration import cuda_version

        history = cls({}, {})
        for record in ledger.done_in(places, _LAST):
            history.of_row.setdefault((record.row, record.output), []).append(record)
        last: dict[tuple[str, bool | None], list[BuildRecord]] = {}
        for (row, output), cuda in places.items():
            if (row, output) in history.of_row:
                continue
            if (output, cuda) not in last:
                newest = ledger.done_of_output(output)
                rows = [each.row for each in newest if cuda in (None, cuda_version(each.values) is not None)]
                last[output, cuda] = list(ledger.done_in([(each, output) for each in rows[-_LAST:]], _LAST))[-_LAST:]
            history.of_others[row, output] = last[output, cuda]
        return history

    def seconds(self, row: str, output: str) -> float | None:
        """The expected duration of an output: the median of its last builds; None if unknown."""
        taken = [record.seconds for record in self._last(row, output) if record.seconds is not None]
        from statistics import median

        return median(taken) if taken else None

    def memory(self, row: str, outputs: Sequence[str]) -> int | None:
        """The highest peak memory of builds of these outputs, in bytes; None if unknown."""
        peaks = [record.peak_memory for output in outputs for record in self._last(row, output)]
        return max((peak for peak in peaks if peak), default=None)

    def _last(self, row: str, output: str) -> list[BuildRecord]:
        return self.of_row.get((row, output)) or self.of_others.get((row, output), [])


def needs_of(declared: Declared, remembered: int | None, needs: Needs = _ANY) -> Needs:
    """What a row needs: by its spec, and by earlier builds.

    Args:
        remembered: the peak memory of earlier builds, in bytes.
        needs: its platform and engine.
    """
    return replace(
        needs,
        cores=declared.cores,
        memory=declared.memory,
        disk=declared.disk,
        memory_per_job=declared.memory_per_job,
        gpu=declared.gpu,
        labels=declared.labels,
        remembered=int(remembered * _MARGIN) if remembered and not declared.memory else None,
    )


def expected_seconds(
    history: History, declared: Declared, row: str, outputs: Sequence[str]
) -> tuple[dict[str, float], str]:
    """The expected duration of each output of a row, and its source: `history`, `spec`, or `unknown`.

    The spec declares a time for the whole row, so each output gets an equal part of it.
    """
    measured = {output: seconds for output in outputs if (seconds := history.seconds(row, output)) is not None}
    if len(measured) == len(outputs):
        return measured, "history"
    if declared.seconds is not None:
        return {output: declared.seconds / len(outputs) for output in outputs}, "spec"
    return measured, "unknown"
