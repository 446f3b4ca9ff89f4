"""`feedstock-tools generate`: make a feedstock's files match its spec."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.committing import commit as commit_changes
from feedstock_tools.cli.committing import repository_of
from feedstock_tools.cli.opening import migrations_of, tidy
from feedstock_tools.cli.printing import say, say_diff, say_error, say_json


@click.command("generate", cls=Command)
@options.folder
@click.option(
    "--recipe-format",
    type=click.Choice(["v0", "v1"]),
    help="Write a meta.yaml, v0, or a recipe.yaml, v1 (default: as the spec says).",
)
@options.output("the feedstock", kind="folder")
@options.pinning
@options.check
@options.diff
@options.as_json
@options.force
@options.commit("Generate from feedstock.yaml")
def command(
    feedstock: Path,
    recipe_format: Literal["v0", "v1"] | None,
    output: Path | None,
    pinning: str | None,
    check: bool,
    show_diff: bool,
    as_json: bool,
    force: bool,
    commit: str | None,
) -> int:
    """Write the recipe and variant files that FEEDSTOCK/feedstock.yaml describes.

    The pinning (default: the newest fetched one) has the time stamps of migrations that the spec only names.
    conda-smithy's .gitignore hides the spec and its record from git: --commit adds them all the same.
    """
    from feedstock_tools.feedstock.git import left_out
    from feedstock_tools.generate.generating import generate

    if as_json and show_diff:
        raise click.UsageError("--json and --diff exclude each other")
    if commit is not None and (check or output):
        raise click.UsageError("--commit excludes --check and --output")
    generated = generate(feedstock, recipe_format=recipe_format, folder=output, migrations=migrations_of(pinning))
    repository = repository_of(generated.folder, commit)
    folder, stale = generated.folder, generated.stale
    for change in stale:
        if show_diff or (change.kind == "edited" and not (force or check)):
            say_diff([change.diff()], err=as_json)
    if as_json:
        say_json([{"file": str(folder / change.path), "state": change.kind} for change in generated.changes])
    if check:
        for change in stale:
            say_error(f"{folder / change.path}: {_STALE[change.kind]}")
        return 1 if stale else 0
    tidy(feedstock)
    generated.apply(force=force)
    for change in () if as_json else stale:
        say(f"{'removed' if change.new is None else 'wrote'} {folder / change.path}")
    if not (stale or as_json):
        say(f"nothing to do: {len(generated.texts)} files match the spec")
    if repository is not None:
        commit_changes(repository, generated.kept(), "Generate from feedstock.yaml", commit)
    elif output is None and (hidden := left_out(folder, generated.kept().seen)):
        say(f"note: git ignores {', '.join(hidden)}; `generate --commit` adds them all the same", err=True)
    return 0


_STALE = {
    "new": "is missing",
    "changed": "does not match the spec",
    "removed": "is no longer part of the spec",
    "edited": "was edited since it was generated",
}
