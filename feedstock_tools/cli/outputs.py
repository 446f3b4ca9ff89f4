"""`feedstock-tools outputs`: the files of the packages that configurations will build."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say


@click.command("outputs", cls=Command)
@options.rules
@options.missing
@options.as_json
@options.configurations
def command(
    names: tuple[str, ...], feedstock: Path | None, rules: str | None, channels: tuple[str, ...], as_json: bool
) -> None:
    """List the exact file names of the packages that configurations will build, hash included.

    Without a NAME: all configurations. Nothing is solved or built.
    """
    from feedstock_tools.channel.repodata import lacking
    from feedstock_tools.feedstock.configurations import configurations_of
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.report.outputs import outputs_json, outputs_text
    from feedstock_tools.rerender.outputs import output_files
    from feedstock_tools.rerender.rules import Rules

    folder = find_feedstock(feedstock, Path()).folder
    chosen = configurations_of(folder, names)
    files = output_files(folder, chosen, Rules.parse(rules) if rules else Rules.newest())
    if channels:
        files = lacking(files, channels)
    say(outputs_json(files) if as_json else outputs_text(files), nl=as_json)
