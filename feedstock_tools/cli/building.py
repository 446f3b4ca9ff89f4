"""The work of `build` after parsing: choose configurations, then list, build or debug them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, rows_by_short_name, select, with_filter
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.wording import shown

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger import ComparisonRecord
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.hosts import Capacity, Limits
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.observer import Observer
    from feedstock_tools.builds.runs.run import BuildResult
    from feedstock_tools.report.run.plain import Terminal

#: The number of rows that can be rendered within a second or two.
_FORESEEN = 200


@dataclass(frozen=True, slots=True)
class Named:
    """The selection of configurations on the command line.

    Attributes:
        glob: only configurations whose names match it are considered.
        everything: also all other configurations that can be built here.
    """

    names: tuple[str, ...]
    glob: str | None = None
    everything: bool = False


class _Speaker(Protocol):
    def say(self, text: str) -> None: ...


def list_configurations(workspace: Workspace, named: Named, *, as_json: bool) -> int:
    """Print the configurations, all or the named ones, and their built outputs."""
    from feedstock_tools.builds.matrix.listing import listing
    from feedstock_tools.report.matrix.text import list_json, list_text

    candidates = with_filter(named.glob, workspace.plan.configurations)
    chosen = select(named.names, candidates) if named.names else candidates
    listed = listing(workspace, workspace.plan.complete(chosen))
    rows = rows_by_short_name(candidates)
    if as_json:
        say_json(list_json(listed, rows))
    else:
        say(list_text(listed, rows))
    return 0


def build(
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
    from feedstock_tools.builds.plan.refusals import refuse_other_names, refuse_unbuildable
    from feedstock_tools.builds.runs.run import run
    from feedstock_tools.redaction import command_line
    from feedstock_tools.report.run import text

    left_out = _left_out(workspace, named, terminal)
    chosen = choose(workspace, named, left_out, terminal)
    refuse_unbuildable(chosen, workspace.engines)
    refuse_other_names(workspace, chosen)
    say_all(terminal, text.name_notes(named.names, candidates_of(workspace, named)))
    say_all(terminal, text.engine_notes(workspace, chosen))
    planned = agenda(workspace, chosen, capacity, limits.jobs)
    say_all(terminal, text.channel_notes(planned))
    say_all(terminal, text.again_notes(planned))
    uncompiled = _uncompiled(workspace, named, planned, terminal)
    if uncompiled:
        left_out = {**left_out, **uncompiled}
        kept = [configuration for configuration in chosen if configuration.name not in uncompiled]
        planned = agenda(workspace, kept, capacity, limits.jobs)
    planned = replace(planned, prepared=True)
    if planned.todo:
        say_all(terminal, text.path_notes(workspace.artifacts))

    def carried_out(where: Workspace, agenda: Agenda) -> BuildResult:
        with watched(workspace, terminal, limits.jobs, len(agenda.rows)) as observer:
            return run(where, agenda, limits, observer, command=command_line(sys.argv))

    result = carried_out(workspace, planned)
    comparisons = None
    if build_twice is not None:
        from feedstock_tools.cli.verifying import Second, verified

        second = Second(chosen, build_twice, capacity, limits.jobs)
        comparisons = verified(workspace, result, second, terminal, carried_out)
    return report(workspace, result, left_out, terminal, comparisons, as_json=as_json)


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
    from feedstock_tools.report.run import text
    from feedstock_tools.report.run.text import are_same, verified_json, verified_text

    if as_json:
        compared = {} if comparisons is None else {"verified": verified_json(comparisons)}
        say_json({**text.summary_json(result, left_out), **compared})
    else:
        terminal.answer(text.summary_text(result, left_out, where))
        if comparisons is not None:
            terminal.answer(verified_text(comparisons, result.artifacts))
    if result.built and terminal.stream.isatty():
        _foresee(workspace)
    return 0 if result.is_complete and are_same(comparisons or ()) else 1


@contextmanager
def watched(workspace: Workspace, terminal: Terminal, jobs: int, rows: int) -> Iterator[Observer]:
    """The observer of a run for the terminal and for `status --watch`; Ctrl-C ends the run in order."""
    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.matrix.live import recorded
    from feedstock_tools.builds.runs.observer import Observers
    from feedstock_tools.redaction import command_line

    with (
        signals_as_exit(),
        recorded(workspace.artifacts, command_line(sys.argv)) as recorder,
        observing(terminal, min(jobs, rows), rows) as observer,
    ):
        yield Observers(observer, recorder)


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
    from feedstock_tools.report.run.plain import fetching_in_lines
    from feedstock_tools.report.run.text import channel_notes

    chosen = choose(workspace, named, {}, terminal)
    refuse_unbuildable(chosen, workspace.engines)
    planned = agenda(workspace, chosen, Capacity.of_machine(None, None), 1)
    say_all(terminal, channel_notes(planned))
    ready = make_ready(workspace, planned, output, fetching_in_lines(terminal.say))
    terminal.answer(f"\n{ready.stem} is ready to be built by hand.")
    for label, path in ready.paths.items():
        terminal.answer(f"  {label:12} {path}")
    work = ready.paths["work"]
    terminal.answer(f"\n  cd {work} && source build_env.sh && bash -x ./conda_build.sh")
    if not sys.stdin.isatty():
        return 0
    shell = ["bash", "--rcfile", "build_env.sh", "-i"]
    return subprocess.run(shell, cwd=work, env=dict(ready.environment), check=False).returncode


def _left_out(workspace: Workspace, named: Named, terminal: Terminal) -> Mapping[str, str]:
    """The configurations that `--all` leaves to other machines, with the reasons."""
    if not named.everything:
        return {}
    from feedstock_tools.builds.plan.refusals import left_to_others
    from feedstock_tools.report.run.text import left_out_notes

    left_out = left_to_others(candidates_of(workspace, named), workspace.engines)
    say_all(terminal, left_out_notes(left_out))
    return left_out


def _uncompiled(workspace: Workspace, named: Named, planned: Agenda, terminal: Terminal) -> Mapping[str, str]:
    """The configurations that `--all` leaves out because the stand-in channel lacks their compiler, with the reasons.

    Raises:
        InputError: one of them was named, or there are no others.
    """
    if not planned.todo:
        return {}
    from feedstock_tools.builds.plan.refusals import refuse
    from feedstock_tools.builds.runs.run import prepare
    from feedstock_tools.report.run.plain import fetching_in_lines
    from feedstock_tools.report.run.text import left_out_notes

    reasons = prepare(workspace, planned, fetching_in_lines(terminal.say))
    if not reasons:
        return {}
    names = planned.channels.keys()
    required = {configuration.name for configuration in select(named.names, candidates_of(workspace, named))}
    optional = names - required if named.everything and len(reasons) < len(names) else set()
    refuse({name: reason for name, reason in reasons.items() if name not in optional}, some=len(names - optional))
    say_all(terminal, left_out_notes(reasons))
    return reasons


def choose(
    workspace: Workspace, named: Named, left_out: Mapping[str, str], terminal: Terminal
) -> tuple[PlannedConfiguration, ...]:
    """The selected configurations with outputs; without a name the only one, or the choice from the menu.

    Raises:
        InputError: a name matches nothing, or none was given and there is no terminal for the menu.
    """
    candidates = candidates_of(workspace, named)
    possible = (
        [configuration.name for configuration in candidates if configuration.name not in left_out]
        if named.everything
        else []
    )
    if named.names or possible:
        return workspace.plan.complete(select([*named.names, *possible], candidates))
    if len(candidates) == 1:
        terminal.say(f"Found {candidates[0].name} configuration")
        return workspace.plan.complete(candidates)
    if sys.stdin.isatty():
        return workspace.plan.complete([choose_from_menu(candidates)])
    listed = "\n".join(f"  {configuration.short_name:32} {configuration.name}" for configuration in candidates)
    raise InputError(f"name the configurations to build, or use --all to build all that can be built here:\n{listed}")


def candidates_of(workspace: Workspace, named: Named) -> tuple[PlannedConfiguration, ...]:
    configurations = workspace.plan.configurations
    if not configurations:
        path = workspace.feedstock.folder / CI_SUPPORT
        raise InputError("the feedstock has no configurations", path=path, hint="Write them: feedstock-tools rerender")
    return with_filter(named.glob, configurations)


def say_all(speaker: _Speaker, lines: Iterator[str]) -> None:
    for line in lines:
        speaker.say(line)


@contextmanager
def observing(terminal: Terminal, jobs: int, rows: int) -> Iterator[Observer]:
    """The observer of a run: the log itself of one row at a time, otherwise a table or lines."""
    from feedstock_tools.report.run.plain import Failures

    if jobs <= 1 or isinstance(terminal, Failures):
        yield terminal
        return
    from feedstock_tools.report.run.many import Lines, LiveTable
    from feedstock_tools.report.run.plain import UNFOLDED

    if terminal.stream.isatty() and terminal.fold == UNFOLDED:
        with LiveTable(terminal.stream) as table:
            yield table
    else:
        yield Lines(terminal.stream, rows, terminal.fold)


def _foresee(workspace: Workspace) -> None:
    """Render the configurations that were not built, while a person reads the table: the next `--list` is fast."""
    rest = [configuration for configuration in workspace.plan.configurations if not configuration.rendered]
    if rest and sum(len(configuration.rows) for configuration in rest) <= _FORESEEN:
        with suppress(InputError):  # reported when they are requested
            workspace.plan.complete(rest)


def choose_from_menu(configurations: Sequence[PlannedConfiguration]) -> PlannedConfiguration:
    """Ask for one of the configurations by number, as conda-smithy's script does.

    Raises:
        InputError: the answer is empty, or not a number of the menu.
    """
    sys.stderr.write("config not selected, please choose from the following:\n\n")
    for number, configuration in enumerate(configurations, 1):
        sys.stderr.write(f"{number}. {shown(configuration.name)}\n")
    sys.stderr.write("\n> ")
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    if not typed.isdecimal() or not 1 <= int(typed) <= len(configurations):
        mistake = f"'{typed}' is not one of the numbers 1 to {len(configurations)}" if typed else "no option selected"
        raise InputError(mistake)
    return configurations[int(typed) - 1]
