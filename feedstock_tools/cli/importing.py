"""`feedstock-tools import`: write the spec of a recipe that people wrote."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json


@click.command("import", cls=Command)
@options.folder
@options.pinning
@options.dry_run
@options.as_json
@options.force
def command(feedstock: Path, pinning: str | None, dry_run: bool, as_json: bool, force: bool) -> int:
    """Write a feedstock.yaml whose generated recipe renders to what the recipe of FEEDSTOCK renders to.

    The recipe and the generated one are rendered in every configuration and rerendered; the exit code is 1 if they
    differ. Lines that the spec copies are counted. The recipe itself stays as it is: `generate --force` replaces it.
    """
    from feedstock_tools.cli.rerender import chosen_pinning
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.importing import import_recipe, refuse_spec
    from feedstock_tools.report.importing import imported_text, imported_values

    folder = find_feedstock(feedstock, Path()).folder
    if not (force or dry_run):
        refuse_spec(folder)
    imported = import_recipe(folder, pinning=chosen_pinning(pinning, folder))
    if not dry_run:
        path = imported.write(force=force)
        if not as_json:
            say(f"wrote {path}")
    if as_json:
        say_json(imported_values(imported))
    else:
        say(imported_text(imported), nl=False)
    return 1 if imported.differences else 0
