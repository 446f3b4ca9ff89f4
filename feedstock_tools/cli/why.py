"""`feedstock-tools why` and `outputs`: what a rerender's configurations have, and the packages that they build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.fetched import required_pinning
from feedstock_tools.cli.opening import refuse_without_feedstock
from feedstock_tools.cli.printing import say, say_result
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import find_feedstock

if TYPE_CHECKING:
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.why.model import Explanation
    from feedstock_tools.rerender.why.reasons import RerenderedSource


@command("why")
@click.option(
    "--not",
    "wishes",
    metavar="WISH",
    multiple=True,
    help="Explain why no job has this: cuda12.9, cuda, cpu, py3.13, KEY=VALUE, or a platform such as osx-64.",
)
@options.pinning
@options.rules
@options.as_json
@options.key_or_configurations
def why(
    names: tuple[str, ...],
    wishes: tuple[str, ...],
    feedstock: Path | None,
    pinning: str | None,
    rules: str | None,
    as_json: bool,
) -> None:
    """Explain where the values of a key come from and what uses it, as a rerender of the feedstock sets them.

    With the NAME of configurations instead of a KEY, explain each of their keys. After a KEY, NAMEs limit the answer to
    these configurations.

    With --not, explain for each platform what took a value or a platform away; repeat it for jobs with several values.
    """
    from feedstock_tools.feedstock.configurations import renamed, short_names
    from feedstock_tools.report import why as report
    from feedstock_tools.rerender.why.absence import absences
    from feedstock_tools.rerender.why.reasons import rerendered_source

    if bool(wishes) == bool(names):
        raise click.UsageError("give a KEY or a NAME, or --not with what is missing")
    folder = feedstock or Path()
    refuse_without_feedstock(folder)
    about = rerendered_source(folder, pinning=required_pinning(pinning, folder, fetches=False), rules=_rules(rules))
    titles = short_names(folder, tuple(about.configurations.values()))
    if wishes:
        found = tuple(absences(about, wishes))
        values, lines = report.absences_as_plain(found), report.absences_as_lines(renamed(found, titles), folder)
    else:
        answers = _answers(about, *names)
        values, lines = report.as_plain(answers), report.as_lines(renamed(answers, titles), folder)
    if as_json:
        say_result(values)
        return
    for line in lines:
        say(line)


def _answers(about: RerenderedSource, key: str, *names: str) -> tuple[Explanation, ...]:
    from feedstock_tools.feedstock.configurations import choose
    from feedstock_tools.rerender.why.reasons import explain_configurations, explain_key, unknown

    def chosen(*names: str) -> list[str]:
        found = choose([name.removesuffix(".yaml") for name in names], tuple(about.configurations.values()))
        return [configuration.name for configuration in found]

    if key in about.keys:
        return explain_key(about, key, chosen(*names) if names else ())
    try:
        chosen(key)
    except InputError:
        from feedstock_tools.gpu_code.architecture_lists import VARIABLES

        if key in VARIABLES or key == "architectures":
            hint = "Build scripts set GPU architectures: `feedstock-tools cuda check -v` lists them, and where."
            raise InputError(f"'{key}' is no key of variants", hint=hint) from None
        raise unknown(about, key) from None
    return explain_configurations(about, chosen(key, *names))


@command("outputs")
@options.rules
@options.missing
@options.as_json
@options.configurations
def outputs(
    names: tuple[str, ...], feedstock: Path | None, rules: str | None, channels: tuple[str, ...], as_json: bool
) -> None:
    """List the exact file names of the packages that configurations will build, hash included.

    Without a NAME: all configurations. Nothing is solved or built.
    """
    from feedstock_tools.channel.repodata import lacking
    from feedstock_tools.feedstock.configurations import configurations_of, in_short
    from feedstock_tools.report.why import outputs_json, outputs_text
    from feedstock_tools.rerender.outputs import output_files

    folder = find_feedstock(feedstock, Path()).folder
    chosen = configurations_of(folder, names)
    files = output_files(folder, chosen, _rules(rules))
    if channels:
        files = lacking(files, channels)
    say_result(outputs_json(files) if as_json else outputs_text(in_short(files, folder)))


def _rules(name: str | None) -> Rules:
    from feedstock_tools.rerender.rules import Rules

    return Rules.parse(name) if name else Rules.newest()
