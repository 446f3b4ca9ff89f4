"""`feedstock-tools collect`: merge the ledgers and channels of several machines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_error, say_json


@click.command("collect", cls=Command)
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@options.output_dir
@options.as_json
@options.feedstock
def command(folders: tuple[Path, ...], feedstock: Path | None, output_dir: Path | None, as_json: bool) -> int:
    """Merge the builds, packages and logs of other artifacts folders, as the jobs of a CI service leave them.

    A DIR is such a folder (it has a ledger.sqlite), or contains some. Every package is first verified by its hash. A
    folder with anything wrong, such as a package that is missing or differs, or one of another feedstock, is refused
    as a whole; the others are merged, and the status is 1. Known builds are skipped, so a second call does nothing.
    """
    from feedstock_tools.builds.publish.collect import collect
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.feedstock.layout import Artifacts

    target = find_feedstock(feedstock, Path.cwd())
    artifacts = Artifacts((output_dir or target.artifacts).resolve())
    tidy(target.folder, artifacts)
    done = collect(folders, artifacts, target)
    for mistake in done.refused:
        say_error(f"error: {mistake}")
    status = 1 if done.refused else 0
    if as_json:
        say_json({**asdict(done), "refused": list(map(str, done.refused))})
        return status
    folders_read = f"{done.folders} folder{'s' if done.folders != 1 else ''}"
    taken = f"{done.builds} builds, {done.packages} packages and {done.tests} tests merged"
    say(f"{folders_read}: {taken}, {done.known} builds already known.")
    if done.again:
        say(f"{done.again} packages were skipped: an earlier build from the same inputs made them.")
    say(f"Ledger: {artifacts.ledger}")
    return status
