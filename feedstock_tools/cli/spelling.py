"""What all commands and groups have in common: the general options, and the nearest names for unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Any, NoReturn

import click

from feedstock_tools.cli.general import format_apart, with_general
from feedstock_tools.cli.printing import begin


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
