"""`feedstock-tools lint`: mistakes of a recipe that conda-forge's linter does not see."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("lint", cls=Command)
@options.folder
@options.as_json
@click.option(
    "--format", "form", type=click.Choice(["text", "github", "sarif"]), default="text", help="Form of the findings."
)
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
def command(feedstock: Path, as_json: bool, form: str, fix: bool) -> int:
    """Find mistakes in a recipe: colliding packages, dead selectors, loose metapackages, licenses, duplicates.

    The exit code is 1 if something is found. `cuda check` holds CUDA and GPU architectures against the facts.
    """
    from feedstock_tools.check.linting import fixed, lint_feedstock
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.report.linting import findings_github, findings_lines, findings_sarif, findings_values

    folder = find_feedstock(feedstock, Path()).folder
    if fix:
        changes = fixed(open_draft(folder)).changes()
        for line in changes.diff():
            say(line, nl=False, err=True)
        changes.apply()
    findings = lint_feedstock(folder)
    if as_json:
        say_json(findings_values(findings))
    elif form == "sarif":
        say_json(findings_sarif(findings))
    else:
        say((findings_github if form == "github" else findings_lines)(findings), nl=False)
    return 1 if findings else 0
