"""`feedstock-tools outputs`: the files of the packages that configurations will build."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["command"]


@click.command("outputs")
@click.argument("names", nargs=-1, metavar="[CONFIGURATION]...")
@click.option("--feedstock", type=click.Path(path_type=Path), default=".", metavar="DIR", help="Default: here.")
@click.option("--rules", metavar="SMITHY[+CONDA_BUILD]", help="Behave as these versions; default the newest.")
@click.option(
    "--missing", "channels", multiple=True, metavar="CHANNEL", help="Only what this channel lacks; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    names: tuple[str, ...], feedstock: Path, rules: str | None, channels: tuple[str, ...], as_json: bool
) -> None:
    """List the exact file names of the packages that configurations will build, hash included.

    A CONFIGURATION is the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as
    linux_64_cuda11.2; without one it is all of them. Nothing is solved or built.
    """
    from feedstock_tools.channel.missing import lacking
    from feedstock_tools.feedstock.configurations import configurations_of
    from feedstock_tools.rerender.outputs import as_record, as_table, output_files
    from feedstock_tools.rerender.rules import Rules

    chosen = configurations_of(feedstock, names)
    files = output_files(feedstock, chosen, Rules.parse(rules) if rules else Rules.newest())
    if channels:
        files = lacking(files, channels)
    click.echo(json.dumps([as_record(file) for file in files], indent=2) if as_json else as_table(files), nl=as_json)
