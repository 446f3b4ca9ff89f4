"""A row on its way from the plan to its packages: one value, to which each stage of a run adds a value of its own.

    planned   what the recipe says: its variant and its outputs
    wanted    what the ledger lacks of that, and what building it takes
    running   where it is built, with which resources
    ended     what became of it

All of it is plain data. A row that waits again loses its `running`; what a stage has added never changes otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from feedstock_tools.builds.plan.hosts import LOG_LIMIT, Share
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.feedstock.layout import kept_name
from feedstock_tools.feedstock.planned import PackageId, PlannedOutput, PlannedRow

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Failed
    from feedstock_tools.builds.ledger import BuildRecord


@dataclass(frozen=True)
class Wanted:
    """What a row lacks, and what building that takes.

    Attributes:
        identities: the ledger's identity of each output, by the output's name.
        inputs: the parts of that identity, each with its digest, by the output's name.
        done: the records of its built outputs, by name; `missing` are the others, in order.
        makes: the missing outputs that no earlier row in the agenda makes for it.
        shared: the shared builds that the missing outputs inherit from: name → the ledger's identity.
        after: the package ids of those that other rows of the agenda run.
        needs: what it asks of a host.
        seconds: the expected duration of each output that it makes, by name, as far as known; `seconds_source` is the
            source: `history`, `spec` or `unknown`.
        not_before: the earliest time for it to begin, on the clock of the run.
    """

    identities: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, str]]
    done: Mapping[str, BuildRecord]
    missing: tuple[PlannedOutput, ...]
    makes: tuple[PlannedOutput, ...]
    needs: Needs
    seconds: Mapping[str, float] = field(default_factory=dict)
    seconds_source: str = "unknown"
    not_before: float = 0.0
    shared: Mapping[str, str] = field(default_factory=dict)
    after: frozenset[PackageId] = frozenset()

    @cached_property
    def expected(self) -> float | None:
        """The expected duration of the row in seconds; None if unknown."""
        seconds = [self.seconds[output.name] for output in self.makes if output.name in self.seconds]
        return sum(seconds) if len(seconds) == len(self.makes) else None

    @cached_property
    def packages(self) -> frozenset[PackageId]:
        """The packages of its missing outputs. Rows that make the same one are not built at the same time."""
        return frozenset(output.package_id for output in self.missing)

    @property
    def makes_kept(self) -> frozenset[str]:
        """The names under which a host keeps the shared builds that it makes."""
        return frozenset(kept_name(self.identities[output.name]) for output in self.missing if output.is_shared)


@dataclass(frozen=True, slots=True)
class Running:
    """Where a row is built.

    Attributes:
        host: its name; `share` is the row's part of it.
        attempt: the number of the attempt, from 1.
        seconds: the time limit of an attempt; None for none. `log_limit`: bytes of the log.
    """

    host: str
    share: Share
    attempt: int = 1
    seconds: float | None = None
    log_limit: int = LOG_LIMIT


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a row: the records of outputs done before and made now, in order; and its failure, if any."""

    before: tuple[BuildRecord, ...]
    now: tuple[BuildRecord, ...]
    failed: Failed | None = None
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a configuration; see the module for its stages.

    `configuration` is its name. A row of an agenda is at least wanted; `running` and `ended` are None before.
    """

    configuration: str
    planned: PlannedRow
    wanted: Wanted
    running: Running | None = None
    ended: Ended | None = None

    @property
    def name(self) -> str:
        return self.planned.name

    @property
    def title(self) -> str:
        """Its short name, or the name of a shared build."""
        return self.name if self.is_shared else self.planned.short_name or self.name

    @property
    def is_shared(self) -> bool:
        """Whether it is a shared build, which other rows of the agenda wait for."""
        return any(output.is_shared for output in self.planned.outputs[:1])

    @property
    def platform(self) -> str:
        return self.wanted.needs.platform

    @property
    def at(self) -> Running:
        """Where it is built.

        Raises:
            ValueError: it has not begun.
        """
        if self.running is None:
            raise ValueError(f"{self.name} has not begun")
        return self.running

    @property
    def failed(self) -> Failed | None:
        """Its failure, if it has ended with one."""
        return self.ended.failed if self.ended else None
