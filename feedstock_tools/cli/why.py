"""`feedstock-tools why`: explain where a value comes from, and why a key is in the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import refuse_without_feedstock
from feedstock_tools.cli.printing import say, say_json

if TYPE_CHECKING:
    from feedstock_tools.rerender.why.model import Explanation
    from feedstock_tools.rerender.why.reasons import RerenderedSource


@click.command("why", cls=Command)
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
def command(
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
    from feedstock_tools.cli.rerender import chosen_pinning
    from feedstock_tools.report.why import as_lines, as_plain
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.why.reasons import rerendered_source

    if bool(wishes) == bool(names):
        raise click.UsageError("give a KEY or a NAME, or --not with what is missing")
    folder = feedstock or Path()
    refuse_without_feedstock(folder)
    about = rerendered_source(
        folder, pinning=chosen_pinning(pinning, folder), rules=Rules.parse(rules) if rules else Rules.newest()
    )
    if wishes:
        _say_absences(about, wishes, folder, as_json)
        return
    answers = _answers(about, *names)
    if as_json:
        say_json(as_plain(answers))
        return
    for line in as_lines(answers, folder):
        say(line)


def _say_absences(about: RerenderedSource, wishes: tuple[str, ...], folder: Path, as_json: bool) -> None:
    from feedstock_tools.report.why import absences_as_lines, absences_as_plain
    from feedstock_tools.rerender.why.absence import absences

    found = tuple(absences(about, wishes))
    if as_json:
        say_json(absences_as_plain(found))
        return
    for line in absences_as_lines(found, folder):
        say(line)


def _answers(about: RerenderedSource, key: str, *names: str) -> tuple[Explanation, ...]:
    from feedstock_tools.errors import InputError
    from feedstock_tools.feedstock.configurations import choose
    from feedstock_tools.rerender.why.reasons import explain_configurations, explain_key, unknown

    configurations = tuple(about.configurations.values())
    if key in about.keys:
        chosen = choose(_without_ending(names), configurations) if names else ()
        return explain_key(about, key, [configuration.name for configuration in chosen])
    try:
        choose([key.removesuffix(".yaml")], configurations)
    except InputError:
        raise unknown(about, key) from None
    chosen = choose(_without_ending((key, *names)), configurations)
    return explain_configurations(about, [configuration.name for configuration in chosen])


def _without_ending(names: Sequence[str]) -> list[str]:
    return [name.removesuffix(".yaml") for name in names]
