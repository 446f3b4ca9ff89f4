"""How commands and options are spelled: nearest names for unknown ones, and old spellings, which still work."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from feedstock_tools.cli.general import format_apart, with_general
from feedstock_tools.cli.printing import begin, say


@dataclass(frozen=True, slots=True)
class OldSpelling:
    """An option of version 0.1 whose name has changed.

    Attributes:
        command: the command that took it, such as `cuda resolve`.
        old: the old option.
        new: what to write instead; empty if nothing is needed.
        instead: the arguments that replace it; a single option takes over the value of the old one.
        is_last: its value is a word that now stands after all others.
        unless: options beside which it is no old spelling, the long one first.
    """

    command: str
    old: str
    new: str
    instead: tuple[str, ...] = ()
    is_last: bool = False
    unless: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is obsolete, in messages."""
        return f"`{self.old}` without `{self.unless[0]}`" if self.unless else f"`{self.old}`"


#: They work in this version, with a note; the next version removes them.
OLD_SPELLINGS = (
    OldSpelling("generate", "--format", "--recipe-format", ("--recipe-format",)),
    OldSpelling("variants", "--list", "`variants` alone"),
    OldSpelling("gpu", "--gpu", "--model", ("--model",)),
    OldSpelling("cuda resolve", "--all", "--limit 1000", ("--limit=1000",)),
    OldSpelling("ci", "--channel", "--missing", ("--missing",)),
    OldSpelling("why", "--configuration", "the name alone, after the key", is_last=True),
    OldSpelling("build", "--verify", "--build-twice", ("--build-twice",)),
    OldSpelling(
        "variants", "--check", "--check --output variants", ("--check", "--output=variants"), unless=("--output", "-o")
    ),
)


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
    """A command that still takes its old spellings."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, including old spellings; each of those gets a note on stderr."""
        return super().parse_args(ctx, _respelled(_path(ctx), args))


class Group(_General, click.Group):
    """A group whose commands take old spellings, and that suggests the nearest command for an unknown one."""

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


def _path(ctx: click.Context) -> str:
    """The words of a command after the program's name: `cuda resolve`; those of `build` for build-locally.py."""
    if ctx.parent is None:
        return ctx.command.name or ""
    return " ".join(ctx.command_path.split()[-2 if ctx.parent and ctx.parent.parent else -1 :])


def _respelled(command: str, arguments: Sequence[str]) -> list[str]:
    until = list(arguments).index("--") if "--" in arguments else len(arguments)
    given = arguments[:until]
    old = {
        spelling.old: spelling
        for spelling in OLD_SPELLINGS
        if spelling.command == command and not any(word.startswith(spelling.unless) for word in given)
    }
    options: list[str] = []  # whole options come first, so that those on the command line take precedence
    words: list[str] = []
    last: list[str] = []
    left = iter(given)
    for argument in left:
        name, equals, value = argument.partition("=")
        spelling = old.get(name)
        if spelling is None:
            words.append(argument)
            continue
        say(f"note: {spelling.title} is obsolete and will be removed; use {_quoted(spelling.new)}", err=True)
        if spelling.is_last:
            last += [value] if equals else [word for word in (next(left, None),) if word is not None]
        elif equals:
            words.append(f"{spelling.instead[0]}={value}" if spelling.instead else value)
        else:
            options += [word for word in spelling.instead if "=" in word]
            words += [word for word in spelling.instead if "=" not in word]
    return [*options, *words, *arguments[until:], *last]


def _quoted(text: str) -> str:
    return f"`{text}`" if text.startswith("-") else text
