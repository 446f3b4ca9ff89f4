"""`feedstock-tools rehearse`: solve every environment before anything is built."""

from __future__ import annotations

import os
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted


@click.command("rehearse", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@click.option("--fresh", is_flag=True, help="Ignore earlier results for the same input, and solve again.")
@options.as_json
@options.html
@options.configurations
def command(
    names: tuple[str, ...],
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    fresh: bool,
    as_json: bool,
    html: Path | None,
) -> int:
    """Solve every environment of configurations, and show which builds users would get. Nothing is built.

    Without a NAME: all configurations. Exits with 1 if an environment does not solve, or if a user would get a build
    other than the intended one. The HTML page is one file without external resources: the problems, the builds that
    users would get, and all environments, with a filter.
    """
    from feedstock_tools.builds.channels import channels_to_rehearse
    from feedstock_tools.builds.plan.workspace import artifacts_of
    from feedstock_tools.check.rehearsal import rehearse_feedstock
    from feedstock_tools.feedstock.configurations import configurations_of
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.report.checks.rehearsal import rehearsal_text

    if feedstock is None and names and Path(names[0]).is_dir():
        feedstock, names = Path(names[0]), names[1:]
    chosen = find_feedstock(feedstock, Path.cwd())
    artifacts = artifacts_of(chosen, output_dir)
    configurations = configurations_of(chosen.folder, names)
    solve_in = channels_to_rehearse(chosen, artifacts, configurations, channels, os.environ)
    rehearsal = rehearse_feedstock(chosen, artifacts, configurations, solve_in, fresh=fresh, progress=_solved)
    if html is not None:
        from feedstock_tools.files.changes import write_whole
        from feedstock_tools.report.checks.rehearsal import rehearsal_page

        write_whole(html, rehearsal_page(rehearsal, chosen.name))
        say(f"wrote {html}", err=as_json)
    if as_json:
        say_json(rehearsal.to_json())
    elif html is None:
        say(rehearsal_text(rehearsal))
    return 0 if rehearsal.holds else 1


def _solved(count: int) -> None:
    stage(f"rehearse: {counted(count, 'environment')} solved")
