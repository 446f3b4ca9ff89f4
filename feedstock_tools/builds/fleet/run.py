"""Running an agenda on the hosts of a fleet: the same rows, the same ledger and the same observer as on one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.cluster.kinds import JobKind
from feedstock_tools.builds.fleet.orders.compiling import parcels_of
from feedstock_tools.builds.fleet.results.crew import FleetCrew
from feedstock_tools.builds.fleet.results.following import Place
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Limits
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.observer import Observer
from feedstock_tools.builds.runs.run import BuildResult, result_of
from feedstock_tools.builds.runs.scheduler import carry_out
from feedstock_tools.builds.runs.shared import remove_finished, renewed
from feedstock_tools.digests import digest_of_values
from feedstock_tools.feedstock.git import commit_of
from feedstock_tools.processes import this_machine
from feedstock_tools.redaction import redacted


def run_name(workspace: Workspace) -> str:
    """The name of the runs that fill the artifacts folder of a workspace, for `fleet stop`."""
    owner = digest_of_values([this_machine(), str(workspace.artifacts.root)])
    return f"{workspace.feedstock.folder.name}-{owner[:6]}"


def run_on_fleet(
    workspace: Workspace,
    agenda: Agenda,
    limits: Limits,
    observer: Observer,
    link: Link,
    say: Callable[[str], object],
    *,
    kinds: Sequence[JobKind] = (),
    command: str = "",
) -> BuildResult:
    """Build the rows of an agenda on a fleet.

    Args:
        link: an open connection to the fleet.
        say: called with what the user should know, from any thread.
        kinds: of jobs of a cluster that may become hosts of the fleet.
        command: the command line, for the ledger.

    Raises:
        WorkError: the artifacts folder, a channel or the ledger cannot be used; builds go on.
    """
    parcels = parcels_of(workspace, agenda)
    with Ledger(workspace.artifacts.ledger) as ledger:
        agenda = renewed(agenda, workspace.artifacts, {})
        places = _places(workspace, agenda, ledger, command)
        crew = FleetCrew(workspace, agenda, link, parcels, places, limits, say, kinds)
        built = carry_out(agenda, limits, observer, ledger, crew)
        crew.forget_shared(ledger.done)
        remove_finished(workspace.artifacts, agenda)
        return result_of(workspace, agenda, built)


def _places(workspace: Workspace, agenda: Agenda, ledger: Ledger, command: str) -> dict[str, Place]:
    """Where the packages of each configuration go, by its name."""
    commit = commit_of(workspace.feedstock.folder)
    places = {}
    for row in (*agenda.done, *agenda.kept, *agenda.todo):
        engine = workspace.engines.engine_for(row.configuration, row.platform)
        choice = agenda.channels[row.configuration]
        places[row.configuration] = Place(
            artifacts=workspace.artifacts,
            ledger=ledger,
            feedstock=workspace.feedstock.folder,
            engine=f"{engine.name} {engine.version}",
            channels=tuple(redacted(name) for name in choice.names),
            commit=commit,
            command=command,
            built_on=choice.properties,
        )
    return places
