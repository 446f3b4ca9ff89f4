"""Draw the parts of the pages in docs/ that say what the code says: options, keys of the spec, and rules of `lint`.

    python -m maintenance.drawn    write them between their marks

maintenance/architecture.py draws the pictures of docs/architecture.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from feedstock_tools.check.linting import feedstock_files  # noqa: F401 - adds its rules to those of conda-forge
from feedstock_tools.check.linting.conda_forge import SMITHY_RULES
from feedstock_tools.cli import program
from feedstock_tools.generate.spec.model import json_schema

PAGES = Path(__file__).resolve().parent.parent / "docs"
_PART = re.compile(
    r"(<!-- ([\w -]+): drawn by `python -m maintenance\.drawn`; do not edit -->\n).*?(<!-- end of \2 -->)", re.DOTALL
)
#: The options that every command takes: docs/command-line.md explains them.
_GLOBAL = frozenset({"--quiet", "--verbose", "--color", "--wide"})
#: Commands of a group that have a page of their own.
_OWN_PAGE = frozenset({"cuda env", "cuda gpu", "cuda search", "edit enable-gpu", "edit to-v1"})


@dataclass(frozen=True)
class Taken:
    """An option as one command takes it."""

    command: str
    names: tuple[str, ...]
    metavar: str
    help: str

    @property
    def name(self) -> str:
        """Its long name."""
        return max(self.names, key=len)

    @property
    def meaning(self) -> str:
        """What it does in every command that takes it: its help without what is in brackets."""
        return self.help.rstrip(".").partition(" (")[0]

    @property
    def spelled(self) -> str:
        """Its names, each with the form of its value."""
        return ", ".join(f"`{f'{name} {self.metavar}'.strip()}`" for name in self.names)

    def row(self, text: str) -> str:
        """Its row in a table of options."""
        return f"| {_cell(self.spelled)} | {_cell(text)} |"


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command by the words after the program's name, with groups that run by themselves."""
    if isinstance(command, click.Group):
        if command.invoke_without_command and name:
            yield name, command
        context = click.Context(command)
        for each in command.list_commands(context):
            if found := command.get_command(context, each):
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
    names = (*option.opts, *option.secondary_opts)
    return Taken(name, tuple(sorted(names, key=len)), metavar, option.help or "")


def shared() -> dict[str, list[Taken]]:
    """The options that several commands take, by name."""
    by_name: dict[str, list[Taken]] = {}
    for each in taken():
        by_name.setdefault(each.name, []).append(each)
    return {name: uses for name, uses in sorted(by_name.items()) if len(uses) > 1}


def updated(page: str) -> str:
    """The page with what its marks name drawn anew between them; the rest stays."""
    return _PART.sub(lambda part: f"{part[1]}\n{_drawn(part[2])}\n\n{part[3]}", page)


def _drawn(what: str) -> str:
    if what == "rules":
        return _rules()
    if what == "shared options":
        return "\n".join(
            ["| option | meaning |", "|---|---|", *(uses[0].row(uses[0].meaning) for uses in shared().values())]
        )
    if what.startswith("keys of "):
        return _keys(what.removeprefix("keys of "))
    return _options(what.removeprefix("options of "))


def _options(command: str) -> str:
    """The options of a command, or of all commands of a group, but for those of every command."""
    found: dict[str, Taken] = {}
    for each in taken():
        within = each.command == command or each.command.startswith(f"{command} ")
        if within and each.command not in _OWN_PAGE - {command} and each.name not in _GLOBAL:
            found.setdefault(each.name, each)
    if not found:
        raise ValueError(f"no command '{command}' takes options")
    rows = (each.row(each.help.rstrip(".")) for each in found.values())
    return "\n".join(["| option | what it does |", "|---|---|", *rows])


def _keys(model: str) -> str:
    """The keys of a part of the spec, as its schema describes them."""
    found = json_schema()["$defs"][model]["properties"]
    return "\n".join(
        ["| key | meaning |", "|---|---|", *(f"| `{key}` | {found[key]['description']} |" for key in found)]
    )


def _rules() -> str:
    """conda-forge's rules."""
    lines = ["| rule | conda-smithy's | weight | what it finds |", "|---|---|---|---|"]
    for name, each in sorted(SMITHY_RULES.items()):
        only = f" (`{each.format}`)" if each.format else ""
        lines.append(f"| `{name}` | {each.rule.smithy} | {each.weight} | {each.rule.meaning}{only} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for path in PAGES.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if (drawn := updated(text)) != text:
            path.write_text(drawn, encoding="utf-8")
