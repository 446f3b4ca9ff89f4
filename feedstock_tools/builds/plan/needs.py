"""The rows that a run is to build: what of each is missing, what it needs, how long it may take, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.capacity import Capacity
from feedstock_tools.builds.plan.history import History
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.units import size_of, time_of

__all__ = ["Declared", "Needs", "Work", "expected_seconds", "in_order", "needs_of"]

#: A build that took so much is given so much more: the next one differs a little.
_MARGIN = 1.25


@dataclass(frozen=True, slots=True)
class Declared:
    """The `needs` of a spec, in bytes and seconds; None where it does not say."""

    cores: int | None = None
    memory: int | None = None
    memory_per_job: int | None = None
    disk: int | None = None
    seconds: float | None = None
    gpu: bool = False

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Declared:
        """From the keys and texts of a spec's `needs`."""
        sizes = {key: size_of(str(content[key])) for key in ("memory", "memory_per_job", "disk") if content.get(key)}
        cores = content.get("cores")
        return cls(
            cores=int(str(cores)) if cores else None,
            seconds=time_of(str(content["time"])) if content.get("time") else None,
            gpu=bool(content.get("gpu")),
            **sizes,
        )


@dataclass(frozen=True, slots=True)
class Needs:
    """What a row gets: cores, bytes of memory and disk. `source` says of each where the number is from:
    `spec`, `history` or `default`."""

    cores: int
    memory: int
    disk: int | None = None
    memory_per_job: int | None = None
    gpu: bool = False
    source: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """A row of a configuration in a run.

    Attributes:
        base: what identifies the channels, as `identity_on` takes it.
        done: the records of its outputs that are built already, by name; `missing` are the others, in their order.
        seconds: how long it may take, from history or the spec; None where nobody knows.
    """

    configuration: PlannedConfiguration
    row: PlannedRow
    base: str
    done: Mapping[str, BuildRecord]
    missing: tuple[PlannedOutput, ...]
    needs: Needs
    seconds: float | None = None
    seconds_source: str = "unknown"

    @property
    def name(self) -> str:
        """The row's."""
        return self.row.name


def needs_of(declared: Declared, capacity: Capacity, jobs: int, remembered: int | None) -> Needs:
    """What a row gets: what its spec says, else what it took before, else an equal part of the capacity.

    Args:
        jobs: how many builds may run at once.
        remembered: the most memory that it took before, in bytes.
    """
    equal_cores = max(1, len(capacity.cores) // jobs)
    equal_memory = capacity.memory // jobs
    source = {"cores": "spec" if declared.cores else "default"}
    memory, source["memory"] = equal_memory, "default"
    if declared.memory:
        memory, source["memory"] = declared.memory, "spec"
    elif remembered and remembered * _MARGIN > equal_memory:
        memory, source["memory"] = int(remembered * _MARGIN), "history"
    return Needs(
        cores=min(declared.cores or equal_cores, len(capacity.cores)),
        memory=min(memory, capacity.memory),
        disk=declared.disk,
        memory_per_job=declared.memory_per_job,
        gpu=declared.gpu,
        source=source,
    )


def expected_seconds(
    history: History, declared: Declared, row: PlannedRow, outputs: Sequence[PlannedOutput]
) -> tuple[float | None, str]:
    """How long some outputs of a row may take, and whether that is from `history`, the `spec`, or `unknown`."""
    known = history.seconds(row.name, [output.name for output in outputs])
    if known is not None:
        return known, "history"
    return declared.seconds, "spec" if declared.seconds is not None else "unknown"


def in_order(works: Sequence[Work]) -> list[Work]:
    """The order of building: first the rows that make what other rows need too, then the others; longest first.

    Of several rows that would make the same package the longest makes it; where nothing is known of their times the
    order of the plan is kept.
    """
    longest = sorted(works, key=lambda work: -(work.seconds or 0.0))
    wanted_by: dict[tuple[str, str], int] = {}
    for work in works:
        for output in work.missing:
            key = (output.subdir, output.stem)
            wanted_by[key] = wanted_by.get(key, 0) + 1
    makers: list[Work] = []
    others: list[Work] = []
    made: set[tuple[str, str]] = set()
    for work in longest:
        shared = {key for output in work.missing if wanted_by[key := (output.subdir, output.stem)] > 1}
        (makers if shared - made else others).append(work)
        made |= shared
    return [*makers, *others]
