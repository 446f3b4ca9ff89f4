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
@click.option("--github", is_flag=True, help="Print annotations that GitHub shows in a pull request.")
@click.option("--sarif", is_flag=True, help="Print a SARIF log for code scanning.")
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
def command(feedstock: Path, as_json: bool, github: bool, sarif: bool, fix: bool) -> int:
    """Find mistakes in a recipe: colliding packages, dead selectors, loose metapackages, licenses, duplicates.

    The exit code is 1 if something is found. `cuda check` holds CUDA and GPU architectures against the facts.
    """
    from feedstock_tools.check.linting import fixed, lint_feedstock
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.report.linting import findings_github, findings_lines, findings_sarif, findings_values

    if as_json + github + sarif > 1:
        raise click.UsageError("--json, --github and --sarif exclude each other")
    folder = find_feedstock(feedstock, Path()).folder
    if fix:
        changes = fixed(open_draft(folder)).changes()
        for line in changes.diff():
            say(line, nl=False, err=True)
        changes.apply()
    findings = lint_feedstock(folder)
    if as_json:
        say_json(findings_values(findings))
    elif sarif:
        say_json(findings_sarif(findings))
    else:
        say((findings_github if github else findings_lines)(findings), nl=False)
    return 1 if findings else 0
