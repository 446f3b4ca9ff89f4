"""`feedstock-tools why`: where a value comes from, and why a key is in the files at all."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["command"]


@click.command("why")
@click.argument("name", metavar="KEY|CONFIGURATION")
@click.argument("feedstock", type=click.Path(path_type=Path), default=".")
@click.option(
    "--configuration", "configurations", multiple=True, help="With a key: in this configuration (repeatable)."
)
@click.option("--pinning", metavar="DIR|FILE|VERSION", help="The pinning: a folder, its file, or a fetched version.")
@click.option("--rules", metavar="SMITHY[+CONDA_BUILD]", help="Behave as these versions; default the newest.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(
    name: str,
    feedstock: Path,
    configurations: tuple[str, ...],
    pinning: str | None,
    rules: str | None,
    as_json: bool,
) -> None:
    """Say where the values of a key come from and what uses it, as a rerender of FEEDSTOCK gives it.

    With the name of a configuration, say it of each of its keys.
    """
    from feedstock_tools.cli.rerender import chosen_pinning
    from feedstock_tools.report.why import as_lines, as_plain
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.why.reasons import explain

    found = explain(
        feedstock,
        name,
        pinning=chosen_pinning(pinning, feedstock),
        rules=Rules.parse(rules) if rules else Rules.newest(),
        configurations=configurations,
    )
    if as_json:
        click.echo(json.dumps(as_plain(found), indent=2))
        return
    for line in as_lines(found, feedstock):
        click.echo(line)
