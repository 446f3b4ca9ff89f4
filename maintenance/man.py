"""The man pages of all commands, written from their help. A wheel brings them along (`wheel_hook`).

python -m maintenance.man ~/.local/share/man/man1     writes them into a folder
man feedstock-tools build                             reads one
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from feedstock_tools import __version__
from feedstock_tools.cli import program
from feedstock_tools.cli.commands import GENERAL
from feedstock_tools.cli.completion import PROGRAM

#: The folder of the pages in an environment.
FOLDER = "share/man/man1"

_EXIT_CODES = {
    "0": "The command succeeded.",
    "1": "Work failed, or the answer is no.",
    "2": "Bad input: an unknown command, option or name, or an invalid file.",
    "130": "Ctrl-C.",
}
_FILES = {
    ".ci_support": "The configurations of a feedstock, one file for each CI job.",
    "feedstock.yaml": "The spec of a feedstock.",
    "build_artifacts": "Packages, logs and the ledger of builds.",
}


def pages() -> Mapping[str, str]:
    """Each page by its file name, in roff with the macros of man(7)."""
    top = click.Context(program._group, info_name=PROGRAM, help_option_names=["-h", "--help"])
    found = {f"{PROGRAM}.1": _page(program._group, top, program.COMMANDS)}
    for name in program.COMMANDS:
        command = program._group.get_command(top, name)
        assert command is not None  # noqa: S101 - it is one of them
        found[f"{PROGRAM}-{name}.1"] = _page(command, click.Context(command, top, name), {})
    return found


def write_pages(folder: Path) -> list[Path]:
    """Write each page into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages().items():
        written.append(folder / name)
        written[-1].write_text(text, encoding="utf-8", newline="\n")
    return written


def _page(command: click.Command, context: click.Context, commands: Mapping[str, str]) -> str:
    title = context.command_path.replace(" ", "-")
    summary = (command.help or "").partition("\n\n")[0]
    lines = [
        f'.TH {title.upper()} 1 "" "{PROGRAM} {__version__}" "{PROGRAM}"',
        ".SH NAME",
        rf"{_text(title)} \- {_text(_sentence(summary)).rstrip('.')}",
        ".SH SYNOPSIS",
        rf"\fB{_text(context.command_path)}\fR {_text(' '.join(command.collect_usage_pieces(context)))}",
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
        *_options(command, context),
    ]
    if commands:
        lines += _listed("COMMANDS", commands)
    elif isinstance(command, click.Group):
        lines += [line for name in command.list_commands(context) for line in _own_command(command, name, context)]
    lines += _listed("EXIT STATUS", _EXIT_CODES) + _listed("FILES", _FILES)
    return "\n".join(lines) + "\n"


def _options(command: click.Command, context: click.Context, heading: str = ".SH OPTIONS") -> Iterator[str]:
    records = [
        record
        for parameter in command.get_params(context)
        if (heading.startswith(".SH") or (parameter not in GENERAL and parameter.name != "help"))
        and (record := parameter.get_help_record(context)) is not None
        and record[1]
    ]
    if records:
        yield heading
    for names, text in records:
        yield from (".TP", rf"\fB{_text(names)}\fR", _text(_sentence(text)))


def _paragraphs(text: str) -> Iterator[str]:
    """A help text; its paragraphs that begin with backspace keep their lines."""
    for number, part in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        if part.startswith("\b"):
            yield from (".nf", *(_text(line) for line in part.splitlines()[1:]), ".fi")
        else:
            yield _text(_sentence(part))


def _own_command(group: click.Group, name: str, context: click.Context) -> Iterator[str]:
    """A section on a command of a group."""
    command = group.get_command(context, name)
    assert command is not None  # noqa: S101 - it is one of them
    own = click.Context(command, context, name)
    usage = f"{own.command_path} {' '.join(command.collect_usage_pieces(own))}"
    yield from (f'.SH "{_text(own.command_path).upper()}"', rf"\fB{_text(usage)}\fR", ".PP")
    yield from _paragraphs(command.help or "")
    yield from _options(command, own, heading=".SS Options")


def _listed(title: str, items: Mapping[str, str]) -> list[str]:
    entries = ((".TP", rf"\fB{_text(name)}\fR", _text(text)) for name, text in items.items())
    return [f'.SH "{title}"', *(line for entry in entries for line in entry)]


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    """A text without characters that roff reads as requests."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("…", r"\[u2026]")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    sys.stdout.write(f"{len(write_pages(Path(sys.argv[1])))} pages in {sys.argv[1]}\n")
