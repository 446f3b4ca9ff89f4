"""`feedstock-tools plan`: what a build would do, in which order, with what, and for how long."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

__all__ = ["command"]


@click.command("plan")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="As given to the build; repeatable.")
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, metavar="N", help="As given to the build.")
@click.option("--cores", type=click.IntRange(1), metavar="N", help="As given to the build.")
@click.option("--memory", metavar="SIZE", help="As given to the build.")
@click.option("--json", "form", flag_value="json", help="As JSON; bytes and seconds.")
@click.option("--markdown", "form", flag_value="markdown", help="As a Markdown table.")
def command(
    names: tuple[str, ...],
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    jobs: int,
    cores: int | None,
    memory: str | None,
    form: str | None,
) -> None:
    """Say what a build would do: the rows in their order, what each needs, how long it may take; build nothing.

    A NAME is the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as
    linux_64_cuda11.2; without one all configurations are planned. What a row needs is from the spec's needs, else from
    the builds in the ledger, else an equal part of the machine.
    """
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.capacity import Capacity
    from feedstock_tools.builds.plan.session import Session
    from feedstock_tools.report.plan import plan_json, plan_markdown, plan_text
    from feedstock_tools.units import size_of

    capacity = Capacity.of_machine(cores, size_of(memory) if memory else None)
    session = Session.open(feedstock, output_dir, channels, Path.cwd(), os.environ, as_json=True)
    found = agenda(*session.planned(names), capacity, jobs)
    if form == "json":
        click.echo(json.dumps(plan_json(found), indent=2))
    else:
        click.echo(plan_markdown(found) if form == "markdown" else plan_text(found))
