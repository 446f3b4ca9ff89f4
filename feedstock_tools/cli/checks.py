"""`feedstock-tools diff`, `review`, `lint` and `rehearse`: what a change means, and mistakes before a build."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.fetched import chosen_release, pinning_at, readable_pinning
from feedstock_tools.cli.opening import note_behind_spec, tidy
from feedstock_tools.cli.printing import say_commands, say_diff, say_result, table_width, write_page
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import Feedstock, find_feedstock
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.check.findings import Report, Verdict
    from feedstock_tools.check.linting.subject import LintFinding
    from feedstock_tools.check.rehearsal import RehearsalChannels
    from feedstock_tools.recipe.written.document import WrittenFiles
    from feedstock_tools.rerender.configuration import Configuration
    from feedstock_tools.rerender.source import NoPinning


@command("diff")
@click.argument("before", default="HEAD", metavar="[A]")
@click.argument("after", required=False, metavar="[B]")
@click.option("--folders", is_flag=True, help="A and B are folders, not commits.")
@options.feedstock
@options.rules
@options.strict
@options.as_json
@options.markdown
@options.html
def diff(
    before: str,
    after: str | None,
    folders: bool,
    feedstock: Path | None,
    rules: str | None,
    strict: bool,
    as_json: bool,
    markdown: bool,
    html: Path | None,
) -> int:
    """Compare what A and B build: jobs, packages, requirements, run exports, tests.

    A and B are commits of the feedstock; without B the feedstock as it is, without A its last commit. Texts are not
    compared: a recipe that was only rewritten changes no package. Two package files are compared file by file.
    """
    from feedstock_tools.check.findings import Verdict
    from feedstock_tools.feedstock.git import checked_out

    options.refuse_both(as_json, markdown)
    form = "json" if as_json else "markdown" if markdown else "text"
    verdict = Verdict.RIGHT
    if after is not None and _are_packages(before, after):
        result, page = _packages_compared(Path(before), Path(after), form)
    else:
        opened = _folder if folders else checked_out
        home = (feedstock or Path()).resolve()
        result, page, verdict = _feedstocks_compared(home, before, after, opened, rules, form)
    if html is not None:
        write_page(html, page(), beside=form != "text")
    if html is None or form != "text":
        say_result(result, whole=markdown)
    return options.status_of(verdict, strict=strict)


def _folder(_: Path, named: str) -> AbstractContextManager[Path]:
    """A state of a feedstock that is a folder, as `checked_out` has that of a commit."""
    if not Path(named).is_dir():
        raise InputError("is not a folder", path=Path(named))
    return nullcontext(Path(named))


def _are_packages(*words: str) -> bool:
    """Whether all of them are package files.

    Raises:
        InputError: some of them are, and others are not.
    """
    from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES

    packages = [word for word in words if word.endswith(PACKAGE_SUFFIXES)]
    if packages and len(packages) < len(words):
        hint = "Give two packages, or two folders or commits of a feedstock."
        raise InputError(f"{packages[0]} is a package and can only be compared with another", hint=hint)
    return bool(packages)


def _packages_compared(first: Path, second: Path, form: str) -> tuple[object, Callable[[], str]]:
    """How two packages differ, in a form, and what makes the page of it."""
    from feedstock_tools.channel.packages.archive import compare_packages
    from feedstock_tools.report.checks import differences

    found = compare_packages(first, second)
    forms: dict[str, Callable[..., object]] = {
        "json": differences.comparison_json,
        "markdown": differences.comparison_markdown,
        "text": differences.comparison_text,
    }
    return forms[form](found), lambda: differences.comparison_page(found, first.name, second.name)


def _feedstocks_compared(
    home: Path,
    before: str,
    after: str | None,
    opened: Callable[[Path, str], AbstractContextManager[Path]],
    rules: str | None,
    form: str,
) -> tuple[object, Callable[[], str], Verdict]:
    """How two states of a feedstock differ, in a form, what makes the page of it, and whether all was compared."""
    from feedstock_tools.check.differences import compare_feedstocks
    from feedstock_tools.check.findings import verdict_of
    from feedstock_tools.report.checks import differences
    from feedstock_tools.rerender.rules import Rules

    with opened(home, before) as old, nullcontext(home) if after is None else opened(home, after) as new:
        found = compare_feedstocks(old, new, rules=Rules.parse(rules) if rules else None)
    if after is None:
        note_behind_spec(home)
    names = Feedstock(home).name, before, after or "the feedstock as it is"
    forms: dict[str, Callable[..., object]] = {
        "json": differences.differences_json,
        "markdown": differences.differences_markdown,
        "text": differences.differences_text,
    }
    return forms[form](found), lambda: differences.differences_page(found, *names), verdict_of(found.checks)


@command("review")
@click.argument("base", required=False, metavar="[BASE]")
@click.option("--folder", is_flag=True, help="BASE is a folder, not a commit.")
@options.feedstock
@options.pinning
@options.rules
@options.smithy
@options.channels("those of the configuration, else conda-forge")
@click.option("--no-rehearse", is_flag=True, help="Solve no environments.")
@options.strict
@options.as_json
def review(
    base: str | None,
    folder: bool,
    feedstock: Path | None,
    pinning: str | None,
    rules: str | None,
    smithy: str | None,
    channels: tuple[str, ...],
    no_rehearse: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Review a branch as one Markdown comment: what changes for users, and what must be mended.

    BASE is a commit of the feedstock; default: where this branch left the main one. Shows which jobs and packages
    change, whether the feedstock is rerendered, and what `lint`, `cuda check` and `rehearse` find that BASE does not
    have. Exits with 1 if there is something to mend. What could not be checked is named first.
    """
    from feedstock_tools.check.reviewing import review_feedstock
    from feedstock_tools.feedstock.git import branch_base, checked_out
    from feedstock_tools.report.checks.review import review_json, review_markdown
    from feedstock_tools.rerender.smithy import chosen_rules

    gc.disable()  # a short process, as in `rerender`
    if folder and base is None:
        raise click.UsageError("--folder needs BASE")
    home = find_feedstock(feedstock, Path()).folder
    named = base or branch_base(home)
    against = readable_pinning(pinning, home)
    release = chosen_release(smithy, rules)
    with (_folder if folder else checked_out)(home, named) as before:
        found = review_feedstock(
            before,
            home,
            pinning=against,
            smithy=release or ("none" if smithy == "none" else None),
            rules=chosen_rules(rules, release),
            rehearsed_in=None if no_rehearse else lambda touched: _channels(home, touched, channels),
        )
    say_result((review_json if as_json else review_markdown)(found, named, _used(against)), whole=True)
    return options.status_of(found.verdict, strict=strict)


def _used(against: Path | NoPinning | None) -> tuple[str, ...]:
    """What a review compares with, each with its date."""
    from feedstock_tools.facts.cuda import load_cuda

    pinning = (pinning_at(against).describe(datetime.now(UTC)),) if isinstance(against, Path) else ()
    return (*pinning, f"facts about CUDA of {load_cuda().newest_date}")


def _channels(folder: Path, configurations: Sequence[Configuration], requested: tuple[str, ...]) -> RehearsalChannels:
    from feedstock_tools.builds.channels import channels_to_rehearse
    from feedstock_tools.builds.plan.workspace import artifacts_of

    feedstock = find_feedstock(folder, Path())
    return channels_to_rehearse(feedstock, artifacts_of(feedstock, None), configurations, requested, os.environ)


@dataclass(frozen=True, slots=True)
class _Form:
    """How findings are printed."""

    as_json: bool
    github: bool
    sarif: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which findings are reported, and what conda-forge's linter is called by."""

    rule: tuple[str, ...]
    ignore: tuple[str, ...]
    pinning: str | None
    smithy: Path | None

    def includes(self, rule: str) -> bool:
        """Whether findings of a rule are reported."""
        return rule not in self.ignore and (not self.rule or rule in self.rule)


@command("lint")
@options.folder
@options.as_json
@click.option("--github", is_flag=True, help="Print annotations that GitHub shows in a pull request.")
@click.option("--sarif", is_flag=True, help="Print a SARIF log for code scanning.")
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
@options.option("--rule", metavar="RULE", meaning="Report findings of this rule only", repeatable=True)
@options.option("--ignore", metavar="RULE", meaning="Report no findings of this rule", repeatable=True)
@options.pinning
@options.strict
@click.option(
    "--linter",
    "smithy",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Environment with a conda-smithy whose linter to call too.",
)
@options.gathered("choice", _Choice)
@options.gathered("form", _Form)
def lint(feedstock: Path, fix: bool, strict: bool, form: _Form, choice: _Choice) -> int:
    """Find mistakes in a recipe and its variant files, each with its line: conda-forge's rules and ours.

    The exit code is 1 if a mistake is found; remarks do not count.
    `cuda check` compares CUDA versions and GPU architectures with the facts.
    """
    from feedstock_tools.check.findings import Report
    from feedstock_tools.check.linting.lint import RULES, lint_feedstock
    from feedstock_tools.recipe.written.document import read_files
    from feedstock_tools.report.checks import linting as report

    if form.as_json + form.github + form.sarif > 1:
        raise click.UsageError("--json, --github and --sarif exclude each other")
    for rule in (*choice.rule, *choice.ignore):
        if rule not in RULES:
            raise click.UsageError(f"there is no rule '{rule}'; the rules are {', '.join(RULES)}")
    folder = find_feedstock(feedstock, Path()).folder
    against = readable_pinning(choice.pinning, folder)
    note_behind_spec(folder)
    if fix:
        _mend(folder, against if isinstance(against, Path) else None)
    ours = lint_feedstock(folder, pinning=against)
    theirs = _of_smithy(read_files(folder), choice)
    found = Report(
        tuple(each for each in sorted((*ours.findings, *theirs.findings)) if choice.includes(each.rule)),
        tuple(each for each in (*ours.checks, *theirs.checks) if choice.includes(each.name)),
    )
    forms = {form.as_json: report.report_values, form.sarif: report.findings_sarif}
    if form.github:
        say_commands(report.findings_github(found))
    else:
        say_result(forms.get(True, report.findings_lines)(found))
    return options.status_of(found.verdict, strict=strict)


def _mend(folder: Path, pinning: Path | None) -> None:
    """Mend what can be mended safely in the recipe, and show the change."""
    from feedstock_tools.check.linting.lint import mendable, rewritten
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.edit.writing import removed_items

    draft = open_draft(folder)
    recipe = draft.recipe
    edits = [edit for list_, items in mendable(recipe).items() for edit in removed_items(recipe, list_, items)]
    for edit in rewritten(draft, pinning=pinning):
        if all(edit.end < other.start or other.end < edit.start for other in edits):
            edits.append(edit)
    changes = draft.with_document(recipe.changed(edits)).changes()
    say_diff(changes.diff(), err=True)
    tidy(folder)
    changes.apply()


def _of_smithy(files: WrittenFiles, choice: _Choice) -> Report[LintFinding]:
    from feedstock_tools.check.findings import Check, Report
    from feedstock_tools.check.linting.smithy import find_smithy, smithy_findings

    if choice.smithy is None or not choice.includes("conda-smithy"):
        return Report((), ())
    found: tuple[LintFinding, ...] = ()
    why = ""
    try:
        found = smithy_findings(files, find_smithy(choice.smithy))
    except WorkError as error:  # as without a network, for some settings
        why = str(error)
    is_wrong = any(each.weight == "mistake" for each in found)
    return Report(found, (Check.of("conda-smithy", wrong=is_wrong, unknown=why),))


@command("rehearse")
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@click.option("--fresh", is_flag=True, help="Ignore earlier results for the same input, and solve again.")
@options.strict
@options.as_json
@options.html
@options.configurations
def rehearse(
    names: tuple[str, ...],
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    fresh: bool,
    strict: bool,
    as_json: bool,
    html: Path | None,
) -> int:
    """Solve every environment of configurations, and show which builds users would get. Nothing is built.

    Without a NAME: all configurations. Exits with 1 if an environment does not solve, or if a user would get a build
    other than the intended one. The HTML page is one file without external resources: the problems, the builds that
    users would get, and all environments, with a filter.
    """
    from feedstock_tools.builds.channels import channels_to_rehearse
    from feedstock_tools.builds.plan.workspace import artifacts_of
    from feedstock_tools.check.rehearsal import rehearse_feedstock
    from feedstock_tools.feedstock.configurations import configurations_of, in_short
    from feedstock_tools.report.checks.rehearsal import rehearsal_page, rehearsal_text

    chosen = find_feedstock(feedstock, Path.cwd())
    artifacts = artifacts_of(chosen, output_dir)
    configurations = configurations_of(chosen.folder, names)
    solve_in = channels_to_rehearse(chosen, artifacts, configurations, channels, os.environ)
    rehearsal = rehearse_feedstock(chosen, artifacts, configurations, solve_in, fresh=fresh, progress=_solved)
    found = in_short(rehearsal, chosen.folder)
    if html is not None:
        write_page(html, rehearsal_page(found, chosen.name), beside=as_json)
    if as_json or html is None:
        say_result(rehearsal.to_json() if as_json else rehearsal_text(found, table_width()))
    return options.status_of(rehearsal.verdict, strict=strict)


def _solved(count: int) -> None:
    stage(f"rehearse: {counted(count, 'environment')} solved")
