"""The rows of a run as values: their missing outputs, identities, needs and expected duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from feedstock_tools.builds.ledger.records import BuildRecord
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow

#: Subdir and file name without extension: a package's place in a channel, equal for rows that make the same one.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Work:
    """A row of a configuration in a run.

    Attributes:
        configuration: its name; `platform` is its target subdir.
        identities: the ledger's identity of each output, by the output's name.
        inputs: the parts of that identity, each with its digest, by the output's name.
        done: the records of its built outputs, by name; `missing` are the others, in order.
        makes: the missing outputs that no earlier row in the agenda makes for it.
        seconds: the expected duration of each of these, by name, as far as known; `seconds_source` is the source:
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
        """The name of the row."""
        return self.row.name

    @property
    def expected(self) -> float | None:
        """The expected duration of the row in seconds; None if unknown."""
        seconds = [self.seconds[output.name] for output in self.makes if output.name in self.seconds]
        return sum(seconds) if len(seconds) == len(self.makes) else None

    @property
    def places(self) -> frozenset[Place]:
        """The places of its missing outputs."""
        return frozenset(place_of(output) for output in self.missing)


def place_of(output: PlannedOutput) -> Place:
    """The place of an output's package."""
    return output.subdir, output.stem
