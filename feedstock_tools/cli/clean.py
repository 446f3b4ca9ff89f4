"""`feedstock-tools clean`: show and remove caches, work folders, leftovers and old environments."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.printing import say, say_note, say_result
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import find_feedstock

if TYPE_CHECKING:
    from feedstock_tools.feedstock.layout import Artifacts


@command("clean")
@options.folder
@options.output_dir
@options.dry_run
@click.option("--yes", "-y", is_flag=True, help="Remove without asking.")
@click.option("--shared", is_flag=True, help="Also what all feedstocks share: fetched compilers, pinnings, channels.")
@click.option("--packages", is_flag=True, help="Also the built packages.")
@click.option("--logs", is_flag=True, help="Also the logs of builds and tests.")
@click.option("--ledger", is_flag=True, help="Also the record of builds: all of them are built again.")
@options.as_json
def clean(
    feedstock: Path,
    output_dir: Path | None,
    dry_run: bool,
    yes: bool,
    shared: bool,
    packages: bool,
    logs: bool,
    ledger: bool,
    as_json: bool,
) -> int:
    """Show what can be removed, with its size, and remove it: caches, work folders, leftovers, old environments.

    It asks before it removes anything. Whatever is needed again is fetched or made again; packages, logs and the ledger
    stay unless you ask for them. In a folder without a feedstock, only the user's cache is cleaned.
    """
    from feedstock_tools.feedstock.cleaning import USUAL, find_removable, remove_all
    from feedstock_tools.report.cleaning import found_text, kept_text, removable_json, removed_text

    if dry_run and yes:
        raise click.UsageError("--dry-run and --yes exclude each other")
    more = {"shared": shared, "packages": packages, "logs": logs, "ledger": ledger}
    place, artifacts = _place(feedstock, output_dir)
    found = find_removable(place, artifacts, os.environ, USUAL | {kind for kind, is_set in more.items() if is_set})
    if not as_json:
        say(found_text(found))
    if dry_run or not found or not (yes or _agreed(as_json=as_json)):
        if as_json:
            say_result(removable_json(found))
        return 0
    done = remove_all(found, artifacts)
    say_result((removable_json if as_json else removed_text)(done))
    kept = kept_text(done)
    if kept:
        say_note(kept)
    return 1 if kept else 0


def _place(feedstock: Path, output_dir: Path | None) -> tuple[Path | None, Artifacts | None]:
    """The feedstock and its artifacts; None if none was named and there is none here.

    Raises:
        InputError: the named folder is not a feedstock, the output folder is among its inputs, or it is a folder of
            somebody else's that a link or an option leads to.
    """
    from feedstock_tools.builds.plan.workspace import artifacts_of

    try:
        found = find_feedstock(feedstock, Path.cwd())
    except InputError:
        if feedstock != Path() or output_dir is not None:
            raise
        return None, None
    artifacts = artifacts_of(found, output_dir)
    leads_away = artifacts.root.exists() and artifacts.root != found.folder / "build_artifacts"
    if leads_away and not artifacts.ledger.is_file():
        hint = f"An artifacts folder has a {artifacts.ledger.name}. Nothing was removed."
        raise InputError("this is not an artifacts folder", path=artifacts.root, hint=hint)
    return found.folder, artifacts


def _agreed(*, as_json: bool) -> bool:
    """Whether the user agrees.

    Raises:
        UsageError: there is nobody to ask.
    """
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("nothing was removed: --yes removes without asking, --dry-run only lists")
    return click.confirm("Remove all of this?", err=True)
