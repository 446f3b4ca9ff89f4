"""`feedstock-tools plan`: the rows that a build would run, their order, needs and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
    from feedstock_tools.builds.fleet.simulation.simulate import Simulation
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _SimulationOptions:
    """The options of a simulation."""

    hosts: str | None
    times: Path | None
    default_time: str | None
    seed: int
    html: Path | None

    def refuse_incomplete(self, *, markdown: bool) -> None:
        """Refuse options that mean nothing without `--simulate`, or with it."""
        dependent = {"--times": self.times, "--time": self.default_time, "--html": self.html}
        option = next((name for name, value in dependent.items() if value is not None), None)
        if option and self.hosts is None:
            raise click.UsageError(f"{option} needs --simulate HOSTS")
        if markdown and self.hosts is not None:
            raise click.UsageError("--simulate prints text or --json, not --markdown")


@click.command("plan", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
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
@click.option("--seed", type=int, default=0, metavar="N", help="With --simulate: the seed of preemptions (default: 0).")
@options.html
@options.configurations
@options.gathered("place", options.Place)
@options.gathered("settings", _SimulationOptions)
def command(
    names: tuple[str, ...],
    place: options.Place,
    settings: _SimulationOptions,
    jobs: int,
    cores: int | None,
    memory: str | None,
    as_json: bool,
    markdown: bool,
) -> None:
    """Show what a build would do: the rows in their order, what each needs, and how long it may take. Build nothing.

    Without a NAME: all configurations. The needs of a row come from the spec, else from earlier builds in the
    ledger; else each row gets an equal share of the machine.
    """
    options.refuse_both(as_json, markdown)
    settings.refuse_incomplete(markdown=markdown)
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.cli.opening import note_on_stderr, opened_ahead
    from feedstock_tools.report.plan import plan_json, plan_markdown, plan_text
    from feedstock_tools.report.run.text import channel_notes, engine_notes
    from feedstock_tools.wording import size_of

    capacity = Capacity.of_machine(cores, size_of(memory) if memory else None)
    with opened_ahead(place) as workspace:
        chosen = workspace.chosen(names)
        planned = agenda(workspace, chosen, capacity, jobs)
        possible = [configuration for configuration in chosen if configuration.name not in planned.refused]
        notes = [*engine_notes(workspace, possible), *channel_notes(planned)]
        simulated = _simulated(workspace, planned, settings, named=bool(names)) if settings.hosts else None
    for note in notes:
        note_on_stderr(note)
    if simulated is not None:
        _print_simulated(*simulated, planned.refused, settings, as_json=as_json)
    elif as_json:
        say_json(plan_json(planned))
    else:
        say(plan_markdown(planned) if markdown else plan_text(planned))


def _simulated(
    workspace: Workspace, planned: Agenda, settings: _SimulationOptions, *, named: bool
) -> tuple[Simulation, SimulatedHosts]:
    """The simulated run of a plan.

    Raises:
        InputError: the hosts or times are invalid, the time of a row is unknown, or a row that was named fits no host.
    """
    from feedstock_tools.builds.fleet.simulation.hosts import read_hosts
    from feedstock_tools.builds.fleet.simulation.simulate import simulate
    from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
    from feedstock_tools.builds.plan.hosts import local_host
    from feedstock_tools.errors import InputError, Mistake
    from feedstock_tools.wording import time_of

    hosts = read_hosts(settings.hosts or "", local_host(planned.capacity, planned.jobs))
    times = read_times(settings.times) if settings.times else {}
    rows = with_times(planned.todo, times, time_of(settings.default_time) if settings.default_time else None)
    simulation = simulate(rows, hosts, settings.seed)
    if named and simulation.left_out:
        raise InputError.of([Mistake(f"{row} fits no host: {reason}") for row, reason in simulation.left_out.items()])
    return simulation, hosts


def _print_simulated(
    simulation: Simulation,
    hosts: SimulatedHosts,
    refused: Mapping[str, str],
    settings: _SimulationOptions,
    *,
    as_json: bool,
) -> None:
    from datetime import UTC, datetime

    from feedstock_tools.report.simulation import simulation_json, simulation_text, write_simulation_page

    text = simulation_text(simulation, hosts, refused)
    if settings.html is not None:
        write_simulation_page(settings.html, simulation, text, datetime.now(UTC))
        say(f"wrote {settings.html}", err=True)
    if as_json:
        say_json(simulation_json(simulation, hosts, refused, settings.seed))
    else:
        say(text)
