"""`feedstock-tools lint`: mistakes of a recipe, ours and those that conda-forge's linter finds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_diff, say_json

if TYPE_CHECKING:
    from feedstock_tools.check.linting.subject import LintFinding
    from feedstock_tools.recipe.written.document import Document
    from feedstock_tools.recipe.written.files import WrittenFiles


@dataclass(frozen=True, slots=True)
class _Form:
    """How findings are printed."""

    as_json: bool
    github: bool
    sarif: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which findings are wanted, and what conda-forge's linter is called by."""

    rule: tuple[str, ...]
    ignore: tuple[str, ...]
    pinning: str | None
    smithy: Path | None


@click.command("lint", cls=Command)
@options.folder
@options.as_json
@click.option("--github", is_flag=True, help="Print annotations that GitHub shows in a pull request.")
@click.option("--sarif", is_flag=True, help="Print a SARIF log for code scanning.")
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
@options.option("--rule", metavar="RULE", meaning="Report findings of this rule only", repeatable=True)
@options.option("--ignore", metavar="RULE", meaning="Report no findings of this rule", repeatable=True)
@options.pinning
@click.option(
    "--linter",
    "smithy",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Environment with the conda-smithy whose linter to call (default: that of conda-smithy on PATH).",
)
@options.gathered("choice", _Choice)
@options.gathered("form", _Form)
def command(feedstock: Path, fix: bool, form: _Form, choice: _Choice) -> int:
    """Find mistakes in a recipe and its variant files, each with its line.

    Calls conda-forge's linter too, if conda-smithy is on PATH. The exit code is 1 if a mistake is found; remarks do not
    count. `cuda check` compares CUDA versions and GPU architectures with the facts.
    """
    from feedstock_tools.check.linting.lint import lint_feedstock
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.recipe.written.files import read_files

    if form.as_json + form.github + form.sarif > 1:
        raise click.UsageError("--json, --github and --sarif exclude each other")
    _refuse_unknown(choice)
    folder = find_feedstock(feedstock, Path()).folder
    if fix:
        _mend(folder)
    found = [*lint_feedstock(folder, pinning=_pinning(choice)), *_of_smithy(read_files(folder), choice)]
    wanted = [each for each in sorted(found) if _is_wanted(each.rule, choice)]
    _print(wanted, form)
    return 1 if any(each.weight == "mistake" for each in wanted) else 0


def _mend(folder: Path) -> None:
    """Remove what can go safely from the recipe, and show the change."""
    from feedstock_tools.check.linting.lint import mendable
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.edit.writing import removed_items

    def without(recipe: Document) -> Document:
        gone = mendable(recipe).items()
        return recipe.changed(change for list_, items in gone for change in removed_items(recipe, list_, items))

    changes = open_draft(folder).with_recipe(without).changes()
    say_diff(changes.diff(), err=True)
    tidy(folder)
    changes.apply()


def _refuse_unknown(choice: _Choice) -> None:
    from feedstock_tools.check.linting.subject import RULES

    unknown = [rule for rule in (*choice.rule, *choice.ignore) if rule not in RULES]
    if unknown:
        raise click.UsageError(f"there is no rule '{unknown[0]}'; the rules are {', '.join(RULES)}")


def _is_wanted(rule: str, choice: _Choice) -> bool:
    return rule not in choice.ignore and (not choice.rule or rule in choice.rule)


def _pinning(choice: _Choice) -> Path | None:
    from feedstock_tools.channel.kept import find_pinning, pinning_cache

    return find_pinning(choice.pinning, pinning_cache(os.environ)).path if choice.pinning else None


def _of_smithy(files: WrittenFiles, choice: _Choice) -> Sequence[LintFinding]:
    from feedstock_tools.check.linting.smithy import find_smithy, smithy_findings
    from feedstock_tools.errors import WorkError

    program = find_smithy(choice.smithy)
    if not _is_wanted("conda-smithy", choice):
        return ()
    if program is None:
        missing = "conda-smithy is not on PATH (install it from conda-forge, or name its environment with --linter)"
        say(f"conda-forge's linter did not run: {missing}", err=True)
        return ()
    try:
        return smithy_findings(files, program)
    except WorkError as error:  # as without a network, for some settings
        say(f"conda-forge's linter did not run: {error}", err=True)
        return ()


def _print(findings: Sequence[LintFinding], form: _Form) -> None:
    from feedstock_tools.report.checks.linting import findings_github, findings_lines, findings_sarif, findings_values

    if form.as_json:
        say_json(findings_values(findings))
    elif form.sarif:
        say_json(findings_sarif(findings))
    else:
        say((findings_github if form.github else findings_lines)(findings), nl=False)
