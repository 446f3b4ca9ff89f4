"""The rows of a run as values: what of each is missing, under which identities, what it needs, how long it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from feedstock_tools.builds.ledger.records import BuildRecord
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow

__all__ = ["Place", "Work", "place_of"]

#: Subdir and file name without ending: where a package lies in a channel, which rows that make the same one share.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Work:
    """A row of a configuration in a run.

    Attributes:
        configuration: its name; `platform` is the subdir that it is built for.
        identities: the ledger's identity of each output, by the output's name.
        inputs: the parts of that identity, each with its digest, by the output's name.
        done: the records of its outputs that are built already, by name; `missing` are the others, in their order.
        makes: those of the missing that no row before it in the agenda makes for it.
        seconds: how long each of these may take, by name, as far as it is known; `seconds_source` says from what:
            `history`, `spec` or `unknown`.
    """

    configuration: str
    platform: str
    row: PlannedRow
    identities: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, str]]
    done: Mapping[str, BuildRecord]
    missing: tuple[PlannedOutput, ...]
    makes: tuple[PlannedOutput, ...]
    needs: Needs
    seconds: Mapping[str, float] = field(default_factory=dict)
    seconds_source: str = "unknown"

    @property
    def name(self) -> str:
        """The row's."""
        return self.row.name

    @property
    def expected(self) -> float | None:
        """Seconds that the row may take; None where nobody knows."""
        known = [self.seconds[output.name] for output in self.makes if output.name in self.seconds]
        return sum(known) if len(known) == len(self.makes) else None

    @property
    def places(self) -> frozenset[Place]:
        """The places of its missing outputs."""
        return frozenset(place_of(output) for output in self.missing)


def place_of(output: PlannedOutput) -> Place:
    """The place of an output's package."""
    return output.subdir, output.stem
