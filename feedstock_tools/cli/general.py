"""Options that every command takes, also before its name: --quiet, --verbose and --color."""

from __future__ import annotations

from collections.abc import Sequence

import click

from feedstock_tools.cli import printing

NAMES = frozenset({"quiet", "verbose", "color"})


def with_general(params: Sequence[click.Parameter] | None) -> list[click.Parameter]:
    """The parameters of a command and the options that all commands take."""
    return [*(params or ()), *_options()]


def format_apart(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options of a command's help: its own first, then those of all commands."""
    found = [(parameter.name in NAMES, parameter.get_help_record(context)) for parameter in command.get_params(context)]
    for title, general in (("Options", False), ("Options of all commands", True)):
        with formatter.section(title):
            formatter.write_dl([record for kind, record in found if kind is general and record and record[1]])


def _options() -> list[click.Option]:
    return [
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_quiet,
            help="Print only errors and the answer.",
        ),
        click.Option(
            ["--verbose", "-v"],
            is_flag=True,
            expose_value=False,
            callback=_verbose,
            help="Print what is read and run, with times.",
        ),
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            expose_value=False,
            callback=_color,
            help="Print colours (default: auto, in a terminal).",
        ),
    ]


def _quiet(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        _set("quiet", context)


def _verbose(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and printing.loudness() != "verbose":
        _set("verbose", context)
        from feedstock_tools.cli.tracing import trace

        trace(_traced)


def _set(wanted: printing.Loudness, context: click.Context) -> None:
    if printing.loudness() not in (wanted, "normal"):
        raise click.UsageError("--quiet and --verbose exclude each other", context)
    printing.set_loudness(wanted)


def _traced(text: str) -> None:
    """Print a line of --verbose, unless the command line that asked for it is over."""
    if printing.loudness() == "verbose":
        printing.say(text, err=True)


def _color(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        printing.set_colour({"auto": None, "always": True, "never": False}[value])
