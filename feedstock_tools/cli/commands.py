"""What all commands and groups have in common: the general options, and the nearest names for unknown ones."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NoReturn

import click

from feedstock_tools.cli import printing


def _quiet(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        _set("quiet", context)


def _verbose(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and printing.loudness() != "verbose":
        _set("verbose", context)
        from feedstock_tools.cli.progress import trace

        trace(_traced)


def _set(wanted: printing.Loudness, context: click.Context) -> None:
    if printing.loudness() not in (wanted, "normal"):
        raise click.UsageError("--quiet and --verbose exclude each other", context)
    printing.set_loudness(wanted)


def _traced(text: str) -> None:
    """Print a line of --verbose, unless the command line that asked for it is over."""
    if printing.loudness() == "verbose":
        printing.say_note(text)


def _color(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        printing.set_colour({"auto": None, "always": True, "never": False}[value])


def _wide(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        printing.set_wide(True)


def _general(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, expose_value=False, **settings)


#: The options that all commands take.
GENERAL = (
    _general("--quiet", "-q", is_flag=True, callback=_quiet, help="Print only errors and the answer."),
    _general("--verbose", "-v", is_flag=True, callback=_verbose, help="Print what is read and run, with times."),
    _general(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        callback=_color,
        help="Print colours (default: auto, in a terminal).",
    ),
    _general("--wide", is_flag=True, callback=_wide, help="Print tables and lines whole, not fitted to the terminal."),
)


class _General(click.Command):
    """A command or group with the options that all of them take."""

    def __init__(self, name: str | None, params: list[click.Parameter] | None = None, **settings: Any) -> None:
        super().__init__(name, params=[*(params or ()), *GENERAL], **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """Parse arguments; a new command line begins without the options of an earlier one."""
        if settings.get("parent") is None:
            printing.set_loudness("normal")
            printing.set_colour(None)
            printing.set_wide(False)
        return super().make_context(*arguments, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in the help, its own before those of all commands; then the commands of a group."""
        for title, general in (("Options", False), ("Options of all commands", True)):
            parameters = (each for each in self.get_params(ctx) if (each in GENERAL) is general)
            records = (each.get_help_record(ctx) for each in parameters)
            with formatter.section(title):
                formatter.write_dl([record for record in records if record and record[1]])
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


class Command(_General):
    """A command with the options that all of them take."""


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """A function as a command of this program."""
    return click.command(name, cls=Command, **settings)


class Group(_General, click.Group):
    """A group that suggests the nearest command for an unknown one."""

    command_class = Command
    group_class = type

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


#: What names or matches configurations, and no folder, though a stranger's feedstock may have one of that name.
_OF_CONFIGURATIONS = re.compile(r"(linux|osx|win)_|.*[*?[]")
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
    if feedstock is not None or _OF_CONFIGURATIONS.match(word):
        return False
    if word.endswith("-feedstock") and not only_existing:
        return True
    return any(Path(word, file).is_file() for file in _SPEC_OR_RECIPE)
