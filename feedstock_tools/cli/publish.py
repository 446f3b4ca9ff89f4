"""`feedstock-tools publish`: put built packages into a channel."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import is_quiet, say, say_json, stream_of_logs


@click.command("publish", cls=Command)
@click.argument("target", metavar="TARGET")
@options.server
@options.dry_run
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.configurations
@options.gathered("place", options.Place)
def command(
    target: str,
    names: tuple[str, ...],
    server: str | None,
    dry_run: bool,
    place: options.Place,
    as_json: bool,
) -> None:
    """Put complete and tested builds into a channel, each package verified by its hash.

    TARGET is a folder, file://…, s3://BUCKET/CHANNEL, anaconda:OWNER[/LABEL], prefix:CHANNEL or quetz:CHANNEL. Without
    a NAME, everything that is complete and tested is published; named configurations must be complete and tested.
    Packages that the target already has are left alone.
    """
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.builds.publish.publish import publish
    from feedstock_tools.channel.targets import parse_target
    from feedstock_tools.cli.opening import opened_to_read
    from feedstock_tools.report.publishing import PublishLines, published_json, published_text

    channel = parse_target(target, server, os.environ, Path.cwd())
    _note_new_folder(target)
    workspace = opened_to_read(place)
    matrix = read_matrix(workspace, workspace.chosen(names))
    observer = PublishLines(StringIO() if is_quiet() else stream_of_logs(as_json=as_json))
    packages = publish(matrix, channel, observer, complete_only=not names, dry_run=dry_run)
    if as_json:
        say_json(published_json(channel, packages))
    else:
        say(published_text(channel, packages))


def _note_new_folder(target: str) -> None:
    """Note that a bare word creates a folder, since `build` reads such a word as a channel's name."""
    bare = ":" not in target and not target.startswith((".", "~")) and not Path(target).is_absolute()
    if bare and not Path(target).exists():
        say(
            f"note: '{target}' means a new folder here, not a channel's name; ./{target} is the same without this note",
            err=True,
        )
