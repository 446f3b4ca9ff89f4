"""Running an agenda on this machine: from its rows to packages in a channel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Limits
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.files.changes import require_room

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Event
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.observer import NextAttempt, Observer, Progress
    from feedstock_tools.builds.runs.site import Site
    from feedstock_tools.channel.pip import Watch

_NOT_WRITTEN = "the folder of artifacts cannot be written"
_ELSEWHERE = "Give one elsewhere with --output-dir."

_USUAL = Limits()


class _Unwatched:
    """An observer that does nothing."""

    def begin(self, row: Row) -> None: ...
    def event(self, row: Row, event: Event | NextAttempt) -> None: ...
    def end(self, row: Row) -> None: ...
    def progress(self, progress: Progress) -> None: ...
    def ending(self, builds: int, *, go_on: bool) -> None: ...


UNWATCHED = _Unwatched()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One output of a row after a run: its plan, its record (None: not reached), and whether it is new."""

    row: Row
    output: PlannedOutput
    record: BuildRecord | None
    new: bool

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record.result == "done"


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of an agenda: an outcome for each output of each row, in the order of the plan."""

    artifacts: Artifacts
    outcomes: tuple[Outcome, ...]

    @property
    def is_complete(self) -> bool:
        return all(outcome.is_done for outcome in self.outcomes)

    @property
    def built(self) -> bool:
        """Whether anything was built, even if it failed."""
        return any(outcome.new for outcome in self.outcomes)


def run(
    workspace: Workspace, agenda: Agenda, limits: Limits = _USUAL, observer: Observer = UNWATCHED, *, command: str = ""
) -> BuildResult:
    """Build the rows of an agenda, several in parallel if the limits allow it.

    A failed output ends its row, and the rows that share the output; the others are still built,
    unless the limits stop at the first failure. Outputs that were not reached have no record.

    Args:
        limits: how many rows at once, how long each may take, and how often to try again.
        observer: called with every event of the run.
        command: the command line, for the ledger.

    Raises:
        InputError: nothing on this machine compiles for a platform of the stand-in channel.
        WorkError: the artifacts folder, a channel or the ledger cannot be used; all builds have been ended.

    >>> result = build(workspace, plan(workspace, workspace.chosen()[:1], Capacity.of_machine()))
    >>> [outcome.output.name for outcome in result.outcomes if outcome.new]
    ['tiny-base', 'tiny', 'tiny-gpu']
    >>> result.is_complete
    True
    """
    result = result_of(workspace, agenda, _ended(workspace, agenda, limits, observer, command) if agenda.todo else {})
    if agenda.units:
        from feedstock_tools.builds.runs.shared import remove_finished

        remove_finished(workspace.artifacts, agenda)
    return result


def result_of(workspace: Workspace, agenda: Agenda, ended: Mapping[str, Row]) -> BuildResult:
    """The result of an agenda; shared builds are part of it if they failed.

    Args:
        ended: the rows that have ended, by name.
    """
    rows = [ended.get(row.name, row) for row in agenda.in_plan_order]
    rows += (row for row in ended.values() if row.is_shared and row.failed)
    return BuildResult(workspace.artifacts, tuple(outcome for row in rows for outcome in _outcomes(row)))


def _ended(workspace: Workspace, agenda: Agenda, limits: Limits, observer: Observer, command: str) -> Mapping[str, Row]:
    """Build the rows of an agenda; those that have ended, by name."""
    from feedstock_tools.builds.plan.hosts import local_host
    from feedstock_tools.builds.plan.refusals import refuse
    from feedstock_tools.builds.runs.crew import ThisMachine
    from feedstock_tools.builds.runs.scheduler import carry_out
    from feedstock_tools.builds.runs.shared import renewed
    from feedstock_tools.builds.runs.site import open_station

    if not agenda.prepared:
        refuse(prepare(workspace, agenda), some=len(agenda.channels), titles=agenda.titles)
    with Ledger(workspace.artifacts.ledger) as ledger:
        sites = {}
        for name, site in _sites(workspace, agenda, command).items():
            engine = workspace.engines.engine_for(name, site.target)
            sites[name] = site, open_station(site, ledger, engine, workspace.machine)
        crew = ThisMachine(local_host(agenda.capacity, limits.jobs), sites)
        return carry_out(renewed(agenda, workspace.artifacts, sites), limits, observer, ledger, crew)


def prepare(workspace: Workspace, agenda: Agenda, watch: Watch | None = None) -> dict[str, str]:
    """Check that there is room for the builds of an agenda, and fetch the compilers and tools that they lack.

    Args:
        watch: called with the progress of a download.

    Returns:
        The configurations that this machine still cannot build: name → reason.

    Raises:
        WorkError: nothing can be written, or the disk has less free space than a row needs.
    """
    from feedstock_tools.builds.runs.site import provide_compilers
    from feedstock_tools.channel.pip import unwatched

    refuse_no_room(workspace.artifacts, agenda.todo)
    return provide_compilers(workspace, agenda.todo, agenda.channels, watch or unwatched)


def _sites(workspace: Workspace, agenda: Agenda, command: str) -> dict[str, Site]:
    from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
    from feedstock_tools.builds.runs.site import site_of
    from feedstock_tools.feedstock.git import commit_of, epoch_of

    commit = commit_of(workspace.feedstock.folder)
    epoch = epoch_of(workspace.feedstock.folder, workspace.machine) or DEFAULT_EPOCH
    one_row = {row.configuration: row for row in agenda.todo}
    return {
        name: site_of(workspace, agenda, row, commit=commit, command=command, epoch=epoch)
        for name, row in one_row.items()
    }


def refuse_no_room(artifacts: Artifacts, todo: Sequence[Row]) -> None:
    """Refuse to build where nothing can be written, or where the disk has less free space than a row needs.

    Raises:
        WorkError: nothing can be written, or the disk has less free space than a row needs.
    """
    try:
        artifacts.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkError(_NOT_WRITTEN, path=artifacts.root, hint=_ELSEWHERE) from error
    if not os.access(artifacts.root, os.W_OK):
        raise WorkError(_NOT_WRITTEN, path=artifacts.root, hint=_ELSEWHERE)
    for row in todo:
        require_room(artifacts.root, row.wanted.needs.disk or 0, row.name)


def _outcomes(row: Row) -> Iterator[Outcome]:
    before = dict(row.wanted.done)
    new: dict[str, BuildRecord] = {}
    if row.ended is not None:
        before |= {record.output: record for record in row.ended.before}
        new = {record.output: record for record in row.ended.now}
    for output in row.planned.outputs:
        yield Outcome(row, output, new.get(output.name, before.get(output.name)), output.name in new)
