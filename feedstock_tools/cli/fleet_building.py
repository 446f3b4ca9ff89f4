"""The work of `build --fleet` after parsing: the same as on one machine, with the hosts of a fleet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from feedstock_tools.cli.building import Named, candidates_of, choose, report, say_all, watched
from feedstock_tools.cli.fleet_extra import linked
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import select
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.carrying.link import Link
    from feedstock_tools.builds.fleet.cluster.pool import Pool
    from feedstock_tools.builds.fleet.cluster.script import JobKind
    from feedstock_tools.builds.fleet.folder import FleetFolder
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.hosts import Host, Limits
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.run import BuildResult
    from feedstock_tools.feedstock.planned import PlannedConfiguration
    from feedstock_tools.report.run.plain import Terminal

#: How long hosts may take to connect to a hub that has just started, in seconds.
_APPEAR_WITHIN = 10.0
#: Where rows cannot be built that fit no host.
_WHERE = "on this fleet"


def build_on_fleet(
    workspace: Workspace,
    named: Named,
    limits: Limits,
    terminal: Terminal,
    fleet: FleetFolder,
    build_twice: int | None = None,
    *,
    as_json: bool,
) -> int:
    """Build the selected configurations on the hosts of a fleet and print the table.

    Args:
        build_twice: how many rows to build a second time, on other hosts, and to compare; None for none.

    Raises:
        InputError: a name matches nothing, or no host can build its configuration.
        WorkError: the fleet, the artifacts folder or the ledger cannot be used.
    """
    from feedstock_tools.builds.fleet.run import run_on_fleet
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.cli.verifying import Second, verified
    from feedstock_tools.redaction import command_line
    from feedstock_tools.report.run import text

    workspace = replace(workspace, engines=replace(workspace.engines, for_hosts=workspace.engines.given == "container"))
    chosen = choose(workspace, named, {}, terminal)
    say_all(terminal, text.name_notes(named.names, candidates_of(workspace, named)))
    with linked(fleet) as link:
        builders = _builders(link, fleet, twice=build_twice is not None)
        say_all(terminal, _who_builds(fleet, builders))
        planned, left_out = _planned(workspace, named, chosen, builders)
        say_all(terminal, _notes(workspace, planned, left_out))

        def carried_out(where: Workspace, agenda: Agenda) -> BuildResult:
            with watched(workspace, terminal, max(2, builders.jobs), len(agenda.rows)) as observer:
                pool, command = _pool(fleet, builders, link, terminal), command_line(sys.argv)
                return run_on_fleet(where, agenda, limits, observer, link, terminal.say, pool=pool, command=command)

        result, comparisons = carried_out(workspace, planned), None
        if build_twice is not None:
            second = Second(chosen, build_twice, Capacity.of_machine(), builders.jobs, builders.hosts)
            comparisons = verified(workspace, result, second, terminal, carried_out)
    return report(workspace, result, left_out, terminal, comparisons, as_json=as_json, where=_WHERE)


@dataclass(frozen=True, slots=True)
class _Builders:
    """Who builds: the hosts that are there, and the kinds of jobs that may become hosts during the run."""

    present: Sequence[Host]
    kinds: Sequence[JobKind]

    @property
    def hosts(self) -> list[Host]:
        """The hosts, with one for each kind of job."""
        return [*self.present, *(kind.host(kind.name) for kind in self.kinds)]

    @property
    def jobs(self) -> int:
        """The number of rows that they can build at a time."""
        return sum(host.jobs for host in self.present) + sum(kind.most * kind.rows for kind in self.kinds)


def _builders(link: Link, fleet: FleetFolder, *, twice: bool) -> _Builders:
    """Who builds on a fleet.

    Args:
        twice: rows are built again on other hosts, so that there must be two.

    Raises:
        InputError: there are too few hosts, and no job may become one.
    """
    from feedstock_tools.builds.fleet.cluster.folder import job_kinds
    from feedstock_tools.cli.verifying import refuse_single_host

    kinds = job_kinds(fleet)
    present = _hosts_of(link, fleet, may_come=bool(kinds))
    if twice and not kinds:
        refuse_single_host(present)
    return _Builders(present, kinds)


def _pool(fleet: FleetFolder, builders: _Builders, link: Link, terminal: Terminal) -> Pool | None:
    """What submits jobs of a cluster during a run; None for a fleet without such jobs."""
    from feedstock_tools.builds.fleet.cluster.pool import Pool

    return Pool(fleet, builders.kinds, link, terminal.say, os.environ) if builders.kinds else None


def _notes(workspace: Workspace, planned: Agenda, left_out: Mapping[str, str]) -> Iterator[str]:
    """What a person should know before anything begins.

    Raises:
        WorkError: the artifacts folder has no room.
    """
    from feedstock_tools.builds.runs.run import refuse_no_room
    from feedstock_tools.report.run import text

    if left_out:
        yield from text.left_out_notes(left_out, _WHERE)
    yield from text.channel_notes(planned)
    yield from text.again_notes(planned)
    if planned.todo:
        refuse_no_room(workspace.artifacts, planned.todo)
        yield from text.path_notes(workspace.artifacts)


def _planned(
    workspace: Workspace, named: Named, chosen: Sequence[PlannedConfiguration], builders: _Builders
) -> tuple[Agenda, Mapping[str, str]]:
    """The agenda of what the hosts can build, and the configurations that are left out, with the reasons."""
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity

    planned = agenda(workspace, chosen, Capacity.of_machine(), builders.jobs)
    left_out = _left_out(workspace, named, planned, builders.hosts)
    if not left_out:
        return planned, left_out
    kept = [configuration for configuration in chosen if configuration.name not in left_out]
    return agenda(workspace, kept, Capacity.of_machine(), builders.jobs), left_out


def _who_builds(fleet: FleetFolder, builders: _Builders) -> Iterator[str]:
    """The hosts of a run, and the jobs that may become hosts."""
    jobs = [f"up to {counted(kind.most, 'job')} of {kind.name}" for kind in builders.kinds]
    yield f"Fleet {fleet.name}: {', '.join([*(host.name for host in builders.present), *jobs])}"


def _hosts_of(link: Link, fleet: FleetFolder, *, may_come: bool) -> list[Host]:
    """The hosts that are there, after a wait for those of a fleet that has just started.

    Args:
        may_come: hosts may come during the run, so that there need be none.

    Raises:
        InputError: there is none.
    """
    from feedstock_tools.builds.fleet.host.settings import host_of

    end = time.monotonic() + _APPEAR_WITHIN
    while True:
        listing = link.listing
        present = [state for state in listing.hosts.values() if state.is_present]
        if present and (len(present) >= len(fleet.hosts) or listing.up > _APPEAR_WITHIN or time.monotonic() > end):
            return [host_of(state.name, state.report) for state in present]
        if may_come and not fleet.hosts:
            return []
        if time.monotonic() > end:
            hint = "`feedstock-tools fleet status` shows what the hub knows."
            raise InputError(f"no host of the fleet {fleet.name} is connected", hint=hint)
        time.sleep(0.1)


def _left_out(workspace: Workspace, named: Named, planned: Agenda, hosts: list[Host]) -> Mapping[str, str]:
    """The configurations that `--all` leaves out, since no host can build them, with the reasons.

    Raises:
        InputError: one of them was named, or there are no others.
    """
    from feedstock_tools.builds.plan.refusals import refuse
    from feedstock_tools.builds.runs.decide import without_host

    rows = {row.name: row for row in planned.todo}
    reasons = dict(planned.refused)
    for row, reason in without_host(planned.todo, hosts).items():
        reasons.setdefault(rows[row].configuration, reason)
    if not reasons:
        return {}
    required = {configuration.name for configuration in select(named.names, candidates_of(workspace, named))}
    names = planned.channels.keys() | planned.refused.keys()
    optional = names - required if named.everything and len(reasons) < len(names) else set()
    refused = {name: reason for name, reason in reasons.items() if name not in optional}
    refuse(refused, some=len(names - optional), where=_WHERE)
    return reasons
