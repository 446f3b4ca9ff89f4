"""The work of `build` after parsing: choose rows, build them on this machine or on a fleet, compare second builds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from feedstock_tools.cli.options import Named
from feedstock_tools.cli.printing import say_result, table_width
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, matches, select, with_filter
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.redaction import command_line
from feedstock_tools.report import run as text
from feedstock_tools.wording import counted, shown

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import FleetFolder, JobKind, Link
    from feedstock_tools.builds.ledger import ComparisonRecord
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.hosts import Capacity, Host, Limits
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.observer import Observer
    from feedstock_tools.builds.runs.run import BuildResult, Outcome
    from feedstock_tools.report.observers import Terminal

    Build = Callable[[Workspace, Agenda], BuildResult]

#: The number of rows that can be rendered within a second or two.
_FEW_ROWS = 200
#: How long hosts may take to connect to a hub that has just started, in seconds.
_APPEAR_WITHIN = 10.0
#: Where rows cannot be built that fit no host.
_ON_FLEET = "on this fleet"


def list_configurations(workspace: Workspace, named: Named, *, as_json: bool) -> int:
    """Print the configurations, all or the named ones, and their built outputs."""
    from feedstock_tools.builds.matrix.listing import listing
    from feedstock_tools.report.matrix import list_json, list_text

    candidates = with_filter(named.glob, workspace.plan.configurations)
    chosen = select(named.names, candidates) if named.names else candidates
    listed = listing(workspace, workspace.plan.complete(chosen))
    say_result(list_json(listed) if as_json else list_text(listed, table_width()))
    return 0


def build_here(
    workspace: Workspace,
    named: Named,
    capacity: Capacity,
    limits: Limits,
    terminal: Terminal,
    build_twice: int | None = None,
    *,
    as_json: bool,
) -> int:
    """Build the selected configurations and print the table; the exit status is 1 if an output failed.

    Args:
        build_twice: how many rows to build a second time and to compare; None for none.

    Raises:
        InputError: a name matches nothing, or its configuration cannot be built here.
        WorkError: a channel, the artifacts folder or the ledger cannot be used.
    """
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.refusals import left_to_others, refuse_other_names, refuse_unbuildable, titles_of
    from feedstock_tools.builds.runs.run import run
    from feedstock_tools.builds.runs.site import notes_on_compilers

    candidates = _candidates(workspace, named)
    left_out = left_to_others(candidates, workspace.engines) if named.everything else {}
    _say_all(terminal, text.left_out_notes(left_out, titles_of(candidates)))
    chosen = _choose(workspace, named, left_out, terminal)
    refuse_unbuildable(chosen, workspace.engines)
    refuse_other_names(workspace, chosen)
    _say_all(terminal, text.engine_notes(workspace, chosen))
    planned = agenda(workspace, chosen, capacity, limits.jobs)
    _say_all(terminal, text.channel_notes(planned))
    _say_all(terminal, notes_on_compilers(workspace, planned))
    _say_all(terminal, text.again_notes(planned))
    uncompiled = _uncompiled(workspace, named, planned, terminal)
    if uncompiled:
        left_out = {**left_out, **uncompiled}
        kept = [configuration for configuration in chosen if configuration.name not in uncompiled]
        planned = agenda(workspace, kept, capacity, limits.jobs)
    planned = replace(planned, prepared=True)
    if planned.todo:
        _say_all(terminal, text.path_notes(workspace.artifacts))

    def build(where: Workspace, agenda: Agenda) -> BuildResult:
        if not agenda.todo:
            return run(where, agenda, limits)
        with _observed(workspace, terminal, limits.jobs, len(agenda.todo) + len(agenda.done)) as observer:
            return run(where, agenda, limits, observer, command=command_line(sys.argv))

    result = build(workspace, planned)
    comparisons = None
    if build_twice is not None:
        repetition = Repetition(chosen, build_twice, capacity, limits.jobs)
        comparisons = _compared(workspace, result, repetition, terminal, build)
    return report(workspace, result, left_out, terminal, comparisons, as_json=as_json)


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
    from feedstock_tools.builds.fleet import Link, run_name, run_on_fleet
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.builds.runs.run import refuse_no_room

    workspace = replace(workspace, engines=replace(workspace.engines, for_hosts=workspace.engines.given == "container"))
    chosen = _choose(workspace, named, {}, terminal)
    with Link(fleet, run_name(workspace)) as link:
        builders = _builders(link, fleet, twice=build_twice is not None)
        terminal.say(f"Fleet {fleet.name}, run {link.run}: {builders}")
        planned = agenda(workspace, chosen, Capacity.of_machine(), builders.jobs).on_hosts(builders.present)
        left_out = _without_host(workspace, named, planned, builders.hosts)
        if left_out:
            _say_all(terminal, text.left_out_notes(left_out, planned.titles, _ON_FLEET))
            kept = [configuration for configuration in chosen if configuration.name not in left_out]
            planned = agenda(workspace, kept, Capacity.of_machine(), builders.jobs).on_hosts(builders.present)
        _say_all(terminal, text.channel_notes(planned))
        _say_all(terminal, text.again_notes(planned))
        if planned.todo:
            refuse_no_room(workspace.artifacts, planned.todo)
            _say_all(terminal, text.path_notes(workspace.artifacts))

        def build(where: Workspace, agenda: Agenda) -> BuildResult:
            with _observed(workspace, terminal, max(2, builders.jobs), len(agenda.todo) + len(agenda.done)) as observer:
                kinds, command = builders.kinds, command_line(sys.argv)
                return run_on_fleet(where, agenda, limits, observer, link, terminal.say, kinds=kinds, command=command)

        result, comparisons = build(workspace, planned), None
        if build_twice is not None:
            repetition = Repetition(chosen, build_twice, Capacity.of_machine(), builders.jobs, builders.hosts)
            comparisons = _compared(workspace, result, repetition, terminal, build)
    return report(workspace, result, left_out, terminal, comparisons, as_json=as_json, where=_ON_FLEET)


def debug(workspace: Workspace, named: Named, output: str | None, terminal: Terminal) -> int:
    """Set up the environments of one output without building it; in a terminal, open a shell there.

    Raises:
        InputError: a name or the output matches nothing, or more than one output.
        WorkError: the environments cannot be created.
    """
    import subprocess

    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.builds.plan.refusals import refuse_unbuildable
    from feedstock_tools.builds.runs.debug import make_ready
    from feedstock_tools.report.observers import fetching_in_lines

    chosen = _choose(workspace, named, {}, terminal)
    refuse_unbuildable(chosen, workspace.engines)
    planned = agenda(workspace, chosen, Capacity.of_machine(None, None), 1)
    _say_all(terminal, text.channel_notes(planned))
    ready = make_ready(workspace, planned, output, fetching_in_lines(terminal.say))
    terminal.answer(f"\n{ready.stem} is ready to be built by hand.")
    for label, path in ready.paths.items():
        terminal.answer(f"  {label:12} {path}", copied=True)
    work = ready.paths["work"]
    terminal.answer(f"\n  cd {work} && source build_env.sh && bash -x ./conda_build.sh", copied=True)
    if not sys.stdin.isatty():
        return 0
    shell = ["bash", "--rcfile", "build_env.sh", "-i"]
    return subprocess.run(shell, cwd=work, env=dict(ready.environment), check=False).returncode


def report(
    workspace: Workspace,
    result: BuildResult,
    left_out: Mapping[str, str],
    terminal: Terminal,
    comparisons: Sequence[ComparisonRecord] | None = None,
    *,
    as_json: bool,
    where: str = "here",
) -> int:
    """Print the table of a run; the exit status is 1 if an output failed, or if a second build differs.

    Args:
        left_out: the configurations that were left out, with the reasons; `where` they cannot be built.
        comparisons: with second builds; None without `--build-twice`.
    """

    if as_json:
        compared = {} if comparisons is None else {"verified": text.verified_json(comparisons)}
        say_result({**text.summary_json(result, left_out), **compared})
    else:
        terminal.answer(text.summary_text(result, left_out, where, table_width()))
        if comparisons is not None:
            terminal.answer(text.verified_text(comparisons, result.artifacts))
    if result.built and terminal.stream.isatty():
        _render_rest(workspace)
    return 0 if result.is_complete and text.are_same(comparisons or ()) else 1


def _render_rest(workspace: Workspace) -> None:
    """Render the configurations that were not built, while a person reads the table: the next `--list` is fast."""
    rest = [configuration for configuration in workspace.plan.configurations if not configuration.rendered]
    if rest and sum(len(configuration.rows) for configuration in rest) <= _FEW_ROWS:
        with suppress(InputError):  # reported when they are requested
            workspace.plan.complete(rest)


def _candidates(workspace: Workspace, named: Named) -> tuple[PlannedConfiguration, ...]:
    configurations = workspace.plan.configurations
    if not configurations:
        path = workspace.feedstock.folder / CI_SUPPORT
        raise InputError("the feedstock has no configurations", path=path, hint="Write them: feedstock-tools rerender")
    return with_filter(named.glob, configurations)


def _choose(
    workspace: Workspace, named: Named, left_out: Mapping[str, str], terminal: Terminal
) -> tuple[PlannedConfiguration, ...]:
    """The selected configurations with outputs; without a name the only one, or the choice from the menu.

    Raises:
        InputError: a name matches nothing, or none was given and there is no terminal for the menu.
    """
    candidates = _candidates(workspace, named)
    possible = (
        [configuration.name for configuration in candidates if configuration.name not in left_out]
        if named.everything
        else []
    )
    if named.names or possible:
        return workspace.plan.complete(select([*named.names, *possible], candidates))
    if len(candidates) == 1:
        terminal.say(f"Found {candidates[0].short_name} configuration")
        return workspace.plan.complete(candidates)
    if sys.stdin.isatty():
        return workspace.plan.complete([_choose_from_menu(candidates)])
    listed = "\n".join(f"  {shown(configuration.short_name)}" for configuration in candidates)
    raise InputError(f"name the configurations to build, or use --all to build all that can be built here:\n{listed}")


def _choose_from_menu(configurations: Sequence[PlannedConfiguration]) -> PlannedConfiguration:
    """Ask for one of the configurations by number, as conda-smithy's script does.

    Raises:
        InputError: the answer is empty, or not a number of the menu.
    """
    sys.stderr.write("config not selected, please choose from the following:\n\n")
    for number, configuration in enumerate(configurations, 1):
        sys.stderr.write(f"{number}. {shown(configuration.short_name)}\n")
    sys.stderr.write("\n> ")
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    if not typed.isdecimal() or not 1 <= int(typed) <= len(configurations):
        mistake = f"'{typed}' is not one of the numbers 1 to {len(configurations)}" if typed else "no option selected"
        raise InputError(mistake)
    return configurations[int(typed) - 1]


def _uncompiled(workspace: Workspace, named: Named, planned: Agenda, terminal: Terminal) -> Mapping[str, str]:
    """The configurations that `--all` leaves out because the stand-in channel lacks their compiler, with the reasons.

    Raises:
        InputError: one of them was named, or there are no others.
    """
    if not planned.todo:
        return {}
    from feedstock_tools.builds.runs.run import prepare
    from feedstock_tools.report.observers import fetching_in_lines

    reasons = prepare(workspace, planned, fetching_in_lines(terminal.say))
    _refuse_named(workspace, named, reasons, planned.channels.keys())
    _say_all(terminal, text.left_out_notes(reasons, planned.titles))
    return reasons


def _without_host(workspace: Workspace, named: Named, planned: Agenda, hosts: Sequence[Host]) -> Mapping[str, str]:
    """The configurations that `--all` leaves out, since no host can build them, with the reasons.

    Raises:
        InputError: one of them was named, or there are no others.
    """
    from feedstock_tools.builds.runs.decide import without_host

    rows = {row.name: row for row in planned.todo}
    reasons = dict(planned.refused)
    for row, reason in without_host(planned.todo, hosts).items():
        reasons.setdefault(rows[row].configuration, reason)
    _refuse_named(workspace, named, reasons, planned.channels.keys() | planned.refused.keys(), _ON_FLEET)
    return reasons


def _refuse_named(
    workspace: Workspace, named: Named, reasons: Mapping[str, str], chosen: Iterable[str], where: str = "here"
) -> None:
    """Refuse configurations that cannot be built, but for those that `--all` may leave out.

    Args:
        reasons: name → why it cannot be built; `chosen` are the names of all chosen configurations.

    Raises:
        InputError: one of them was named, or there are no others.
    """
    if not reasons:
        return
    from feedstock_tools.builds.plan.refusals import refuse, titles_of

    names, candidates = set(chosen), _candidates(workspace, named)
    required = {configuration.name for name in named.names for configuration in matches(name, candidates)}
    optional = names - required if named.everything and len(reasons) < len(names) else set()
    refused = {name: reason for name, reason in reasons.items() if name not in optional}
    refuse(refused, some=len(names - optional), where=where, titles=titles_of(candidates))


def _say_all(terminal: Terminal, lines: Iterable[str]) -> None:
    for line in lines:
        terminal.say(line)


@contextmanager
def _observed(workspace: Workspace, terminal: Terminal, jobs: int, rows: int) -> Iterator[Observer]:
    """The observer of a run for the terminal and for `status --watch`; Ctrl-C ends the run in order."""
    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.matrix.live import recorded
    from feedstock_tools.builds.runs.observer import Observers

    with (
        signals_as_exit(),
        recorded(workspace.artifacts, command_line(sys.argv)) as recorder,
        _displayed(terminal, min(jobs, rows), rows) as observer,
    ):
        yield Observers(observer, recorder)


@contextmanager
def _displayed(terminal: Terminal, jobs: int, rows: int) -> Iterator[Observer]:
    """The observer of a run for the terminal: the log itself of one row at a time, otherwise a table or lines."""
    from feedstock_tools.report.observers import UNFOLDED, Failures

    if jobs <= 1 or isinstance(terminal, Failures):
        yield terminal
        return
    from feedstock_tools.report.observers import Lines, LiveTable

    if terminal.stream.isatty() and terminal.fold == UNFOLDED:
        with LiveTable(terminal.stream, terminal.width) as table:
            yield table
    else:
        yield Lines(terminal.stream, rows, terminal.fold)


@dataclass(frozen=True, slots=True)
class _Builders:
    """The hosts that are present, and the kinds of jobs that may become hosts during the run."""

    present: Sequence[Host]
    kinds: Sequence[JobKind]

    @property
    def hosts(self) -> list[Host]:
        """The hosts, with one for each kind of job."""
        return [*self.present, *(kind.host for kind in self.kinds)]

    @property
    def jobs(self) -> int:
        """The number of rows that they can build at a time."""
        return sum(host.jobs for host in self.present) + sum(kind.most * kind.rows for kind in self.kinds)

    def __str__(self) -> str:
        jobs = [f"up to {counted(kind.most, 'job')} of {kind.name}" for kind in self.kinds]
        return ", ".join([*(host.name for host in self.present), *jobs])


def _builders(link: Link, fleet: FleetFolder, *, twice: bool) -> _Builders:
    """Who builds on a fleet.

    Args:
        twice: rows are built again on other hosts, so that there must be two.

    Raises:
        InputError: there are too few hosts, and no job may become one.
    """
    from feedstock_tools.builds.fleet import job_kinds

    kinds = job_kinds(fleet.for_hub)
    present = _present_hosts(link, fleet, may_come=bool(kinds))
    if twice and not kinds and len(present) < 2:
        hint = "Without --fleet, this machine builds both."
        raise InputError("--build-twice builds rows on another host too, and the fleet has only one", hint=hint)
    return _Builders(present, kinds)


def _present_hosts(link: Link, fleet: FleetFolder, *, may_come: bool) -> list[Host]:
    """The hosts that are present, after a wait for those of a fleet that has just started.

    Args:
        may_come: hosts may come during the run, so that none is needed at its start.

    Raises:
        InputError: there is none.
    """
    from feedstock_tools.builds.fleet import host_of

    end = time.monotonic() + _APPEAR_WITHIN
    while True:
        present = {name: report for name, report in link.hosts.items() if report}
        hosts = [host_of(name, report) for name, report in present.items() if "cores" in report]
        if hosts and (len(present) >= len(fleet.hosts) or time.monotonic() > end):
            return hosts
        if may_come and not fleet.hosts:
            return []
        if time.monotonic() > end:
            reasons = "; ".join(f"{name}: {report['unfit']}" for name, report in present.items())
            raise InputError(f"no host of the fleet {fleet.name} has joined its scheduler", hint=reasons or None)
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class Repetition:
    """What to build a second time: up to `count` rows of some configurations, within a capacity, on a fleet's hosts.

    Attributes:
        hosts: of the fleet; None for this machine.
    """

    chosen: Sequence[PlannedConfiguration]
    count: int
    capacity: Capacity
    jobs: int
    hosts: Sequence[Host] | None = None

    def built_on(self, result: BuildResult) -> dict[str, str]:
        """Row → the host of the fleet that built it."""
        names = {host.name for host in self.hosts or ()}
        records = (outcome.record for outcome in result.outcomes if outcome.record)
        return {record.row: record.machine for record in records if record.machine in names}

    def without_other_host(self, planned: Agenda) -> Mapping[str, str]:
        """The rows that no other host of the fleet can build, with the reasons."""
        from feedstock_tools.builds.plan.hosts import others_in, with_others
        from feedstock_tools.builds.runs.decide import without_host

        if self.hosts is None:
            return {}
        others = others_in(row.wanted.needs for row in planned.todo)
        return without_host(planned.todo, [with_others(host, others) for host in self.hosts])


def _compared(
    workspace: Workspace, result: BuildResult, repetition: Repetition, terminal: Terminal, build: Build
) -> tuple[ComparisonRecord, ...]:
    """Build rows of a run a second time, and record how their packages compare."""
    from feedstock_tools.builds.runs.run import BuildResult
    from feedstock_tools.builds.testing import verifying

    rows = verifying.rows_to_verify(result, repetition.count)
    if not rows:
        return ()
    terminal.say(f"\nBuilding {counted(len(rows), 'row')} a second time, to compare: {', '.join(rows)}")
    outcomes: list[Outcome] = []
    nowhere: set[str] = set()
    built_on, capacity, jobs = repetition.built_on(result), repetition.capacity, repetition.jobs
    with verifying.second_workspace(workspace) as where:
        for phase in verifying.phases(result, rows):
            planned = verifying.second_agenda(where, repetition.chosen, result, phase, built_on, capacity, jobs)
            planned = planned if repetition.hosts is None else planned.on_hosts()
            reasons = repetition.without_other_host(planned)
            for row, reason in reasons.items():
                terminal.say(f"Not built a second time: {row}: {reason}")
            nowhere |= reasons.keys()
            planned = planned.only([row for row in planned.todo if row.name not in reasons])
            outcomes += build(where, planned).outcomes if planned.todo else ()
        again = BuildResult(where.artifacts, tuple(outcomes))
        return verifying.compared(result, again, [row for row in rows if row not in nowhere])
