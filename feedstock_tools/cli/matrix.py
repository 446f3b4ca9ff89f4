"""`feedstock-tools plan` and `status`: what a build would do, and which configurations are built."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.opening import opened_for_plan, read_matrix_of
from feedstock_tools.cli.printing import say, say_note, say_result, table_width, write_page
from feedstock_tools.errors import FeedstockError, InputError, Mistake
from feedstock_tools.wording import size_of, time_of

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import SimulatedHosts, Simulation
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.check.findings import Verdict

#: Between two readings of the matrix: this time in seconds, and this multiple of the time that a reading takes.
_PAUSE, _REST = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class _SimulationOptions:
    """The options of a simulation."""

    hosts: str | None
    times: Path | None
    default_time: str | None
    seed: int
    html: Path | None
    strict: bool

    def refuse_incomplete(self, *, markdown: bool) -> None:
        """Refuse options that mean nothing without `--simulate`, or with it."""
        dependent = {"--times": self.times, "--time": self.default_time, "--html": self.html}
        option = next((name for name, value in dependent.items() if value is not None), None)
        option = option or ("--strict" if self.strict else None)
        if option and self.hosts is None:
            raise click.UsageError(f"{option} needs --simulate HOSTS")
        if markdown and self.hosts is not None:
            raise click.UsageError("--simulate prints text or --json, not --markdown")


@command("plan")
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.engine
@options.jobs
@options.cores
@options.memory
@options.as_json
@options.markdown
@click.option(
    "--simulate",
    "hosts",
    metavar="HOSTS",
    help="Show how long it takes on other hosts, and what they cost: 3, 3x32c128g, or a file of hosts.",
)
@click.option(
    "--times",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --simulate: the times of rows, such as `linux_64_*: 3 h`.",
)
@click.option(
    "--time", "default_time", metavar="TIME", help="With --simulate: the time of every row without a known one."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    metavar="N",
    help="With --simulate: the first of 20 seeds of preemptions (default: 0).",
)
@options.strict
@options.html
@options.configurations
@options.gathered("place", options.Place)
@options.gathered("settings", _SimulationOptions)
def plan(
    names: tuple[str, ...],
    place: options.Place,
    settings: _SimulationOptions,
    engine: str | None,
    jobs: int,
    cores: int | None,
    memory: str | None,
    as_json: bool,
    markdown: bool,
) -> int:
    """Show what a build would do: the rows in their order, what each needs, and how long it may take. Build nothing.

    Without a NAME: all configurations. The needs of a row come from the spec, else from earlier builds in the
    ledger; else each row gets an equal share of the machine.
    """
    options.refuse_both(as_json, markdown)
    settings.refuse_incomplete(markdown=markdown)
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.builds.runs.site import agenda_here, notes_on_compilers
    from feedstock_tools.report.matrix import NO_CONFIGURATIONS
    from feedstock_tools.report.plan import plan_json, plan_markdown, plan_text
    from feedstock_tools.report.run import channel_notes, engine_notes

    capacity = Capacity.of_machine(cores, size_of(memory) if memory else None)
    with opened_for_plan(place, engine) as workspace:
        chosen = workspace.chosen(names)
        if not chosen:
            raise InputError(NO_CONFIGURATIONS, path=workspace.feedstock.folder)
        planned = agenda_here(workspace, chosen, capacity, jobs)
        possible = [configuration for configuration in chosen if configuration.name not in planned.refused]
        notes = [*engine_notes(workspace, possible), *channel_notes(planned)]
        notes += notes_on_compilers(workspace, planned)
        simulated = _simulated(planned, settings, named=bool(names)) if settings.hosts else None
    for text in notes:
        say_note(text)
    if simulated is not None:
        verdict = _print_simulated(*simulated, planned, settings, as_json=as_json)
        return options.status_of(verdict, strict=settings.strict)
    if as_json or markdown:
        say_result((plan_json if as_json else plan_markdown)(planned), whole=True)
    else:
        say_result(plan_text(planned, table_width()))
    return 0


def _simulated(
    planned: Agenda, settings: _SimulationOptions, *, named: bool
) -> tuple[tuple[Simulation, ...], SimulatedHosts]:
    """The courses that the run of a plan may take; the first is that of the seed.

    Raises:
        InputError: the hosts or times are invalid, the time of a row is unknown, or a row that was named fits no host.
    """
    from feedstock_tools.builds.fleet import courses, read_hosts, read_times, with_times
    from feedstock_tools.builds.plan.hosts import local_host

    hosts = read_hosts(settings.hosts or "", local_host(planned.capacity, planned.jobs))
    times = read_times(settings.times) if settings.times else {}
    rows = with_times(planned.on_hosts().todo, times, time_of(settings.default_time) if settings.default_time else None)
    found = courses(rows, hosts, settings.seed)
    if named and (left_out := found[0].left_out):
        titles = _titles(planned)
        raise InputError.of([Mistake(f"{titles[row]} fits no host: {reason}") for row, reason in left_out.items()])
    return found, hosts


def _titles(planned: Agenda) -> dict[str, str]:
    """What people call the rows and configurations of a plan, by name."""
    return {**planned.titles, **{row.name: row.title for row in planned.todo}}


def _print_simulated(
    found: tuple[Simulation, ...],
    hosts: SimulatedHosts,
    planned: Agenda,
    settings: _SimulationOptions,
    *,
    as_json: bool,
) -> Verdict:
    from feedstock_tools.check.findings import verdict_of
    from feedstock_tools.feedstock.configurations import renamed
    from feedstock_tools.report.plan import simulation_checks, simulation_json, simulation_page, simulation_text

    named = renamed(found, _titles(planned))
    text = simulation_text(named, hosts, planned)
    if settings.html is not None:
        write_page(settings.html, simulation_page(named[0], text, datetime.now(UTC)), beside=True)
    say_result(simulation_json(found, hosts, planned.refused, settings.seed) if as_json else text)
    return verdict_of(simulation_checks(found[0], planned.refused))


@command("status")
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.markdown
@options.html
@options.option("--watch", is_flag=True, meaning="Write the page of --html again and again until Ctrl-C")
@options.configurations
@options.gathered("place", options.Place)
def status(
    names: tuple[str, ...], place: options.Place, as_json: bool, markdown: bool, html: Path | None, watch: bool
) -> None:
    """Show the build matrix: done, running, failed, interrupted, stale, missing, refused.

    It shows when and where each configuration was built, how long that took, and what has changed if it is stale. The
    HTML page is one file without external resources, with filters, logs and a picture of the builds over time. With
    --watch it follows the builds of all runs in the artifacts folder, on this machine or a fleet, and an open page
    reloads itself; end it with Ctrl-C.
    """
    options.refuse_both(as_json, markdown)
    if watch:
        if html is None or as_json or markdown:
            raise click.UsageError("--watch needs --html FILE, and excludes --json and --markdown")
        _watch(names, place, html)
    _, matrix = read_matrix_of(place, names)
    if html is not None:
        from feedstock_tools.report.matrix_page import page

        write_page(html, page(matrix, html.resolve().parent), beside=as_json or markdown)
    if html is None or as_json or markdown:
        from feedstock_tools.report.matrix import matrix_json, matrix_markdown, matrix_text

        if as_json or markdown:
            say_result((matrix_json if as_json else matrix_markdown)(matrix), whole=True)
        else:
            say_result(matrix_text(matrix, table_width()))


def _watch(names: tuple[str, ...], place: options.Place, html: Path) -> NoReturn:
    """Write the page with what goes on until Ctrl-C; the last one stays while the feedstock cannot be read."""
    _write_followed(names, place, html)
    say(f"{html} shows the builds as they go on: open it in a browser. End this with Ctrl-C.")
    refusal, took = "", 0.0
    while True:
        time.sleep(max(_PAUSE, _REST * took))
        began = time.monotonic()
        try:
            _write_followed(names, place, html)
            refusal = ""
        except FeedstockError as error:  # somebody may be editing the recipe
            if str(error) != refusal:
                say_note(f"the page stays as it was: {error}")
            refusal = str(error)
        took = time.monotonic() - began


def _write_followed(names: tuple[str, ...], place: options.Place, html: Path) -> None:
    from feedstock_tools.builds.matrix.live import read_runs
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.report.matrix_page import page

    workspace, matrix = read_matrix_of(place, names)
    write_whole(html, page(matrix, html.resolve().parent, read_runs(workspace.artifacts)))
