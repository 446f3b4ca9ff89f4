"""What all commands and groups have in common: the general options, and the nearest names for unknown ones."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from feedstock_tools.cli import printing
from feedstock_tools.cli.printing import begin

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


class _General(click.Command):
    """A command or group with the options that all of them take."""

    def __init__(self, name: str | None, params: list[click.Parameter] | None = None, **settings: Any) -> None:
        super().__init__(name, params=with_general(params), **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """Parse arguments; a new command line begins without the options of an earlier one."""
        if settings.get("parent") is None:
            begin()
        return super().make_context(*arguments, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in the help, then the commands of a group."""
        format_apart(self, ctx, formatter)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


class Command(_General):
    """A command with the options that all of them take."""


class Group(_General, click.Group):
    """A group that suggests the nearest command for an unknown one."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        commands = self.list_commands(ctx)
        if args and args[0] not in commands and not args[0].startswith("-"):
            refuse_unknown(ctx, args[0], commands)
        return super().resolve_command(ctx, args)


def refuse_unknown(ctx: click.Context, name: str, names: Collection[str], hint: str = "") -> NoReturn:
    """End with a usage error that names the nearest commands.

    Raises:
        UsageError: always.
    """
    nearest = difflib.get_close_matches(name, names, 3)
    suggestion = f" Did you mean {' or '.join(repr(name) for name in nearest)}?" if nearest else ""
    ctx.fail(f"No such command '{name}'.{suggestion}{hint}")


#: A folder with one of these is a feedstock.
_SPEC_OR_RECIPE = ("feedstock.yaml", "recipe/recipe.yaml", "recipe/meta.yaml")


def is_folder(word: str, *, only_existing: bool, feedstock: Path | None) -> bool:
    """Whether a word is the feedstock's folder and not a name, by the rules in docs/command-line.md.

    Args:
        word: as it was typed.
        only_existing: a word with a slash may also be a package.
        feedstock: the value of `--feedstock`; with it, a word without a slash is a name.
    """
    if word in (".", "..") or any(separator in word for separator in (os.sep, os.altsep) if separator):
        return not only_existing or Path(word).is_dir()
    return feedstock is None and any(Path(word, file).is_file() for file in _SPEC_OR_RECIPE)
