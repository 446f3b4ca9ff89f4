"""Every option of every command, as the command line declares it: `python -m tests.support.options` prints a table.

The rows are options, the columns commands; a cell has the option's default there.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click

from feedstock_tools.cli import program


@dataclass(frozen=True)
class Taken:
    """An option as one command takes it."""

    command: str
    names: tuple[str, ...]
    metavar: str
    meaning: str
    remark: str

    @property
    def name(self) -> str:
        """Its long name."""
        return max(self.names, key=len)


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command by the words after the program's name, with groups that run by themselves."""
    if isinstance(command, click.Group):
        if command.invoke_without_command and name:
            yield name, command
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from leaves(found, f"{name} {each}".strip())
    else:
        yield name, command


COMMANDS = dict(leaves(program._group, ""))


def taken() -> tuple[Taken, ...]:
    """Every option of every command; `--help` and `--version` aside."""
    return tuple(
        _taken(name, command, option)
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option)
    )


def _taken(name: str, command: click.Command, option: click.Option) -> Taken:
    metavar = "" if option.is_flag else option.make_metavar(click.Context(command))
    meaning, _, remark = (option.help or "").rstrip(".").partition(" (")
    names = (*option.opts, *option.secondary_opts)
    return Taken(name, tuple(sorted(names, key=len)), metavar, meaning, remark.rstrip(")"))


def shared() -> dict[str, list[Taken]]:
    """The options that several commands take, by name."""
    by_name: dict[str, list[Taken]] = {}
    for each in taken():
        by_name.setdefault(each.name, []).append(each)
    return {name: uses for name, uses in sorted(by_name.items()) if len(uses) > 1}


def documented(uses: list[Taken]) -> str:
    """The row of docs/command-line.md for an option."""
    first = uses[0]
    names = ", ".join(f"`{f'{name} {first.metavar}'.strip()}`" for name in first.names)
    return f"| {_cell(names)} | {_cell(first.meaning)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def table() -> str:
    """All options and the commands that take them, as Markdown, with what differs between them."""
    by_name: dict[str, list[Taken]] = {}
    for each in taken():
        by_name.setdefault(each.name, []).append(each)
    lines = ["| option | metavar | meaning | commands |", "|---|---|---|---|"]
    for _, uses in sorted(by_name.items()):
        commands = ", ".join(f"{each.command} ({each.remark})" if each.remark else each.command for each in uses)
        meanings = " / ".join(dict.fromkeys(each.meaning for each in uses))
        metavars = " / ".join(dict.fromkeys(each.metavar for each in uses))
        lines.append(f"| {' '.join(uses[0].names)} | {_cell(metavars)} | {_cell(meanings)} | {commands} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
