"""`feedstock-tools collect`: one ledger and one channel of those that several machines made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("collect", cls=Command)
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@options.output_dir
@options.as_json
@options.feedstock
def command(folders: tuple[Path, ...], feedstock: Path | None, output_dir: Path | None, as_json: bool) -> None:
    """Take over the builds, packages and logs of other artifacts folders, as the jobs of a CI service leave them.

    A DIR is such a folder (it has a ledger.sqlite), or has them somewhere in it. Every package is held against its hash
    first; where one is missing or differs, or a DIR is another feedstock's, nothing is taken over. What is known
    already is left, so that a second call does nothing.
    """
    from feedstock_tools.builds.publish.collect import collect
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.feedstock.layout import Artifacts

    found = find_feedstock(feedstock, Path.cwd())
    artifacts = Artifacts((output_dir or found.artifacts).resolve())
    done = collect(folders, artifacts, found)
    if as_json:
        say_json(asdict(done))
        return
    folders_read = f"{done.folders} folder{'s' if done.folders != 1 else ''}"
    taken = f"{done.builds} builds, {done.packages} packages and {done.tests} tests taken over"
    say(f"{folders_read}: {taken}, {done.known} builds known already.")
    if done.again:
        say(f"{done.again} packages were left: an earlier build from the same inputs has made them.")
    say(f"Ledger: {artifacts.ledger}")
