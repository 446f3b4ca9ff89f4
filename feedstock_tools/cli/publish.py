"""`feedstock-tools publish`: what was built, into a channel."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

__all__ = ["command"]


@click.command("publish")
@click.argument("target", metavar="TARGET")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--server", metavar="URL", help="The service's own URL, where it is not the public one.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would go; put nothing anywhere.")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="As given to the builds; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print what became of each package as JSON.")
def command(
    target: str,
    names: tuple[str, ...],
    server: str | None,
    dry_run: bool,
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Put complete and tested builds into a channel, each package verified by its hash.

    TARGET is a folder, file://…, s3://BUCKET/CHANNEL, anaconda:OWNER[/LABEL], prefix:CHANNEL or quetz:CHANNEL. Without
    a NAME all that is complete and tested goes; those that are named have to be. What the target has is left.
    """
    from feedstock_tools.builds.matrix.matrix import open_matrix
    from feedstock_tools.builds.publish.publish import publish, published_json, published_text
    from feedstock_tools.channel.targets import parse_target

    place = parse_target(target, server, os.environ, Path.cwd())
    _, matrix = open_matrix(names, feedstock, output_dir, channels, Path.cwd(), os.environ)

    def say(text: str) -> None:
        print(text, file=sys.stderr if as_json else sys.stdout, flush=True)

    packages = publish(matrix, place, say, complete_only=not names, dry_run=dry_run)
    click.echo(json.dumps(published_json(place, packages), indent=2) if as_json else published_text(place, packages))
