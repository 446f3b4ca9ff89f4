"""`feedstock-tools plan`: the rows that a build would run, their order, needs and times."""

from __future__ import annotations

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("plan", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.jobs
@options.cores
@options.memory
@options.as_json
@options.markdown
@options.configurations
@options.gathered("place", options.Place)
def command(
    names: tuple[str, ...],
    place: options.Place,
    jobs: int,
    cores: int | None,
    memory: str | None,
    as_json: bool,
    markdown: bool,
) -> None:
    """Show what a build would do: the rows in their order, what each needs, and how long it may take. Build nothing.

    Without a NAME: of all configurations. The needs of a row come from the spec, else from earlier builds in the
    ledger; else each row gets an equal share of the machine.
    """
    options.refuse_both(as_json, markdown)
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.capacity import Capacity
    from feedstock_tools.cli.opening import note_on_stderr, opened_ahead
    from feedstock_tools.report.plan import plan_json, plan_markdown, plan_text
    from feedstock_tools.report.run.text import channel_notes, engine_notes
    from feedstock_tools.units import size_of

    capacity = Capacity.of_machine(cores, size_of(memory) if memory else None)
    with opened_ahead(place) as workspace:
        chosen = workspace.chosen(names)
        planned = agenda(workspace, chosen, capacity, jobs)
        possible = [configuration for configuration in chosen if configuration.name not in planned.refused]
        notes = [*engine_notes(workspace, possible), *channel_notes(planned)]
    for note in notes:
        note_on_stderr(note)
    if as_json:
        say_json(plan_json(planned))
    else:
        say(plan_markdown(planned) if markdown else plan_text(planned))
