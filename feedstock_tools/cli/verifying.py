"""The work of `build --build-twice`: some rows of a run built a second time, on other hosts where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger import ComparisonRecord
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.hosts import Capacity, Host
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.run import BuildResult, Outcome
    from feedstock_tools.report.run.plain import Terminal


@dataclass(frozen=True, slots=True)
class Second:
    """What to build a second time: up to `count` rows of some configurations, within a capacity, on a fleet's hosts.

    Attributes:
        hosts: of the fleet; None for this machine.
    """

    chosen: Sequence[PlannedConfiguration]
    count: int
    capacity: Capacity
    jobs: int
    hosts: Sequence[Host] | None = None


def verified(
    workspace: Workspace,
    result: BuildResult,
    second: Second,
    terminal: Terminal,
    carried_out: Callable[[Workspace, Agenda], BuildResult],
) -> tuple[ComparisonRecord, ...]:
    """Build rows of a run a second time, and record how their packages compare.

    Args:
        carried_out: runs an agenda in a workspace.

    Raises:
        WorkError: the folder is in use, or the ledger or a package cannot be used.
    """
    from feedstock_tools.builds.runs.run import BuildResult
    from feedstock_tools.builds.testing.verifying import (
        compared,
        phases,
        rows_to_verify,
        second_agenda,
        second_workspace,
    )

    rows = rows_to_verify(result, second.count)
    if not rows:
        return ()
    terminal.say(f"\nBuilding {counted(len(rows), 'row')} a second time, to compare: {', '.join(rows)}")
    outcomes: list[Outcome] = []
    nowhere: set[str] = set()
    with second_workspace(workspace) as where:
        for phase in phases(result, rows):
            planned = second_agenda(
                where, second.chosen, result, phase, _built_on(result, second), second.capacity, second.jobs
            )
            reasons = _without_another_host(planned, second)
            for row, reason in reasons.items():
                terminal.say(f"Not built a second time: {row}: {reason}")
            nowhere |= reasons.keys()
            left = tuple(row for row in planned.todo if row.name not in reasons)
            planned = replace(planned, todo=left, rows=tuple(row.name for row in left))
            outcomes += carried_out(where, planned).outcomes if left else ()
        again = BuildResult(where.artifacts, tuple(outcomes))
        return compared(result, again, [row for row in rows if row not in nowhere])


def refuse_single_host(hosts: Sequence[Host]) -> None:
    """Refuse to build twice on a fleet of one host.

    Raises:
        InputError: it is one.
    """
    if len(hosts) < 2:
        hint = "Without --fleet, this machine builds both."
        raise InputError("--build-twice builds rows on another host too, and the fleet has only one", hint=hint)


def _built_on(result: BuildResult, second: Second) -> dict[str, str]:
    """Row → the host of the fleet that built it."""
    names = {host.name for host in second.hosts or ()}
    records = (outcome.record for outcome in result.outcomes if outcome.record)
    return {record.row: record.machine for record in records if record.machine in names}


def _without_another_host(planned: Agenda, second: Second) -> Mapping[str, str]:
    """The rows that no other host of the fleet can build, with the reasons."""
    from feedstock_tools.builds.plan.hosts import others_in, with_others
    from feedstock_tools.builds.runs.decide import without_host

    if second.hosts is None:
        return {}
    others = others_in(row.wanted.needs for row in planned.todo)
    hosts = [with_others(host, others) for host in second.hosts]
    return without_host(planned.todo, hosts)
