"""`feedstock-tools diff`: what a change of a feedstock means for its jobs and packages."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json


@click.command("diff", cls=Command)
@click.argument("before", default="HEAD", metavar="[A]")
@click.argument("after", required=False, metavar="[B]")
@options.feedstock
@options.rules
@options.as_json
@options.markdown
@options.html
def command(
    before: str,
    after: str | None,
    feedstock: Path | None,
    rules: str | None,
    as_json: bool,
    markdown: bool,
    html: Path | None,
) -> None:
    """Compare what A and B build: jobs, packages, requirements, run exports, tests.

    A and B are folders, or commits of the feedstock; without B the feedstock as it is, without A its last commit. Texts
    are not compared: a recipe that was only rewritten changes no package. Two package files are compared file by file.
    """
    options.refuse_both(as_json, markdown)
    if after is not None and _are_packages(before, after):
        _compare_packages(Path(before), Path(after), as_json=as_json, markdown=markdown, html=html)
        return
    from feedstock_tools.check.differences import compare_feedstocks
    from feedstock_tools.feedstock.git import checked_out
    from feedstock_tools.report.checks.differences import differences_json, differences_markdown, differences_text
    from feedstock_tools.rerender.rules import Rules

    home = (feedstock or Path()).resolve()
    with ExitStack() as open_folders:

        def folder_of(word: str) -> Path:
            folder = Path(word)
            return folder if folder.is_dir() else open_folders.enter_context(checked_out(home, word))

        sides = folder_of(before), home if after is None else folder_of(after)
        differences = compare_feedstocks(*sides, rules=Rules.parse(rules) if rules else None)
    if html is not None:
        from feedstock_tools.feedstock.folder import Feedstock
        from feedstock_tools.report.checks.differences import differences_page

        page = differences_page(differences, Feedstock(home).name, before, after or "the feedstock as it is")
        _write(html, page, as_json or markdown)
    if as_json:
        say_json(differences_json(differences))
    elif html is None or markdown:
        say(differences_markdown(differences) if markdown else differences_text(differences), nl=False)


def _are_packages(*words: str) -> bool:
    """Whether all of them are package files.

    Raises:
        InputError: some of them are, and others are not.
    """
    from feedstock_tools.channel.archive import PACKAGE_SUFFIXES
    from feedstock_tools.errors import InputError

    packages = [word for word in words if word.endswith(PACKAGE_SUFFIXES)]
    if packages and len(packages) < len(words):
        hint = "Give two packages, or two folders or commits of a feedstock."
        raise InputError(f"{packages[0]} is a package and can only be compared with another", hint=hint)
    return bool(packages)


def _compare_packages(first: Path, second: Path, *, as_json: bool, markdown: bool, html: Path | None) -> None:
    from feedstock_tools.channel.archive import compare_packages
    from feedstock_tools.report.checks.differences import comparison_json, comparison_markdown, comparison_text

    found = compare_packages(first, second)
    if html is not None:
        from feedstock_tools.report.checks.differences import comparison_page

        _write(html, comparison_page(found, first.name, second.name), as_json or markdown)
    if as_json:
        say_json(comparison_json(found))
    elif html is None or markdown:
        say(comparison_markdown(found) if markdown else comparison_text(found), nl=False)


def _write(path: Path, page: str, beside_others: bool) -> None:
    """Write a page, and say so: on standard error beside another form of the result."""
    from feedstock_tools.files.changes import write_whole

    write_whole(path, page)
    say(f"wrote {path}", err=beside_others)
