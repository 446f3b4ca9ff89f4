"""The matrix of a feedstock: every configuration with its state, from the plan and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, ComparisonRecord, Ledger, TestRecord, now
from feedstock_tools.builds.matrix.states import ConfigurationState, Surroundings, states
from feedstock_tools.builds.plan.identity import Candidates, candidates_of
from feedstock_tools.builds.plan.refusals import refused
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.processes import process_lives

#: The number of builds in the picture of a matrix.
_LAST = 1000


@dataclass(frozen=True, slots=True)
class Matrix:
    """The planned builds of a feedstock and their states.

    Attributes:
        feedstock: its name.
        artifacts: the folder of the ledger; paths of logs and packages in records are below it.
        at: when the ledger was read, in its form of time.
        configurations: with the state of each output.
        builds: the last 1,000 builds of these configurations in the ledger, the oldest first, whatever their result.
        tests: every test of the packages of these configurations, the oldest first; `comparisons` likewise are those
            with second builds.
    """

    feedstock: str
    artifacts: Path
    at: str
    configurations: tuple[ConfigurationState, ...]
    builds: tuple[BuildRecord, ...]
    tests: tuple[TestRecord, ...] = ()
    comparisons: tuple[ComparisonRecord, ...] = ()

    def compared(self, record: BuildRecord) -> tuple[ComparisonRecord, ...]:
        """The comparisons of a build's packages."""
        hashes = {package.sha256 for package in record.packages}
        return tuple(each for each in self.comparisons if each.sha256 in hashes)


def read_matrix(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> Matrix:
    """The matrix of some configurations. Of a ledger of years only what decides it is read.

    Args:
        chosen: with their outputs.

    Raises:
        WorkError: the ledger cannot be read.

    >>> matrix = read_matrix(workspace, workspace.chosen()[:1])
    >>> [(each.output.name, each.state) for each in matrix.configurations[0].outputs][:2]
    [('libtiny', 'done'), ('tiny-base', 'done')]
    """
    candidates = candidates_of(chosen, workspace.channels, workspace.machine)
    deciding: tuple[BuildRecord, ...] = ()
    last: tuple[BuildRecord, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    comparisons: tuple[ComparisonRecord, ...] = ()
    intact: frozenset[int | None] = frozenset()
    if workspace.artifacts.ledger.is_file():
        with Ledger(workspace.artifacts.ledger) as ledger:
            deciding = _deciding(ledger, chosen, candidates)
            last = ledger.last_builds((configuration.name for configuration in chosen), _LAST)
            packages = [package.sha256 for record in deciding for package in record.packages]
            tests, comparisons = ledger.tests(packages), ledger.comparisons(packages)
            intact = _intact(ledger, deciding, candidates)
    around = Surroundings(candidates, _alive((*deciding, *last)), intact, refused(chosen, workspace.engines), now())
    return Matrix(
        feedstock=workspace.feedstock.name,
        artifacts=workspace.artifacts.root,
        at=around.at,
        configurations=states(chosen, deciding, around),
        builds=last,
        tests=tests,
        comparisons=comparisons,
    )


def _deciding(
    ledger: Ledger, chosen: Sequence[PlannedConfiguration], candidates: Candidates
) -> tuple[BuildRecord, ...]:
    """The builds that decide the states: those of the outputs' identities, and for an output that has none the last
    finished build in each of its places, which is stale."""
    records = ledger.builds_of(candidate.identity for choices in candidates.values() for candidate in choices)
    recorded = {record.identity for record in records}
    places = [
        (row.name, output.name)
        for configuration in chosen
        for row in configuration.rows
        for output in row.outputs
        if not any(
            candidate.identity in recorded for candidate in candidates.get((configuration.name, output.identity), ())
        )
    ]
    more = {record.id: record for record in (*records, *ledger.done_in(places, 1))}
    return tuple(sorted(more.values(), key=lambda record: record.id or 0))


def _intact(ledger: Ledger, builds: Sequence[BuildRecord], candidates: Candidates) -> frozenset[int | None]:
    """For each relevant identity, the newest finished build whose packages are unchanged."""
    wanted = {candidate.identity for choices in candidates.values() for candidate in choices}
    newest: dict[str, int | None] = {}
    for record in reversed(builds):
        counts = record.result == "done" and record.identity in wanted and record.identity not in newest
        if counts and ledger.holds(record):
            newest[record.identity] = record.id
    return frozenset(newest.values())


def _alive(builds: Sequence[BuildRecord]) -> dict[tuple[str, str], bool]:
    """Process and machine of each run with an unfinished build → whether it is alive, as far as known."""
    runs = {(record.process, record.machine) for record in builds if record.result in ("running", "interrupted")}
    states = {run: process_lives(*run) for run in runs}
    return {run: lives for run, lives in states.items() if lives is not None}
