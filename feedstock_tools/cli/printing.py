"""Output of commands: all text is printed here, so that control characters in names never reach the terminal.

The answer goes to stdout; notes and errors go to stderr. `--quiet` leaves out notes, `--verbose` adds what is read and
run, `--color` decides about colours (`cli/commands.py`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

import click

from feedstock_tools.redaction import redacted
from feedstock_tools.wording import fitted, shown, uncoloured

if TYPE_CHECKING:
    from feedstock_tools.cli.progress import Pulse

Loudness = Literal["quiet", "normal", "verbose"]

_loudness: Loudness = "normal"
_colour: bool | None = None
_wide = False
_pulse: Pulse | None = None
#: The word with which a line begins, or that follows its place, and its colour.
_KINDS = {"error": "red", "mistake": "red", "warning": "yellow", "remark": "cyan", "note": "cyan"}
_KIND = re.compile(rf"^((?:\S+:\d+(?::\d+)?: )?)({'|'.join(_KINDS)})(?=: )", re.MULTILINE)
#: The characters of a line that texts are fitted to at least.
_NARROWEST = 40
_LINES_OF_DIFFS = (("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"))


def loudness() -> Loudness:
    """How much is printed besides the answer."""
    return _loudness


def is_quiet() -> bool:
    """Whether only errors and the answer are printed."""
    return _loudness == "quiet"


def set_loudness(wanted: Loudness) -> None:
    """Print this much besides the answer."""
    global _loudness
    _loudness = wanted
    if wanted == "quiet":
        no_signs()


def set_colour(wanted: bool | None) -> None:
    """Print colours or none, whatever the environment says; None: as it says."""
    global _colour
    _colour = wanted


def set_wide(wanted: bool) -> None:
    """Print tables whole in a terminal too."""
    global _wide
    _wide = wanted


def table_width() -> int | None:
    """The characters that a line of a table may have: those of the terminal; None: any number."""
    return None if _wide or not sys.stdout.isatty() else get_terminal_size().columns


def pulse_with(pulse: Pulse) -> None:
    """Note each output in `pulse`, so that signs of life do not come between."""
    global _pulse
    _pulse = pulse


def no_signs() -> None:
    """Give no more signs of life: the command is at its end, or another program has the terminal."""
    if _pulse is not None:
        _pulse.before_output()
        _pulse.end()


def colour_wanted() -> bool | None:
    """Whether to print colours: as `--color` says, else NO_COLOR, FORCE_COLOR or a dumb terminal do; None: if it is a
    terminal.
    """
    if _colour is not None:
        return _colour
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def say(text: str, *, err: bool = False, nl: bool = True, whole: bool = False) -> None:
    """Print a text to stdout, or a note to stderr with `err`, with its control characters escaped and without
    credentials.

    Args:
        whole: its lines stay as they are, since it is for copying; else they are fitted to a terminal.
    """
    if not (err and is_quiet()):
        text = shown(redacted(text))
        _print(_painted(text if whole else _fitted(text, err=err)), err=err, nl=nl)


def say_note(text: str) -> None:
    """Print a note to stderr."""
    say(text, err=True)


def say_error(text: str, *, nl: bool = True) -> None:
    """Print to stderr what nobody may miss: an error, or the reason why a check fails."""
    _print(_painted(_fitted(shown(redacted(text)), err=True)), err=True, nl=nl)


def say_diff(lines: Iterable[str], *, err: bool = False) -> None:
    """Print the lines of a unified diff, each with its end."""
    if not (err and is_quiet()):
        for line in lines:
            _print(_painted_diff(shown(redacted(line))), err=err, nl=False)


def say_result(result: object, *, whole: bool = False) -> None:
    """Print the result to stdout: a text, which may have its line break, or any other value as JSON.

    In JSON a path is a text; credentials are left out of texts.

    Args:
        whole: as for `say`.
    """
    if isinstance(result, str):
        say(result, nl=bool(result) and not result.endswith("\n"), whole=whole)
    else:
        text = json.dumps(_plain(result), indent=2)
        _print(text.replace("##", "#\\u0023"))  # which a runner of workflows would obey


def say_commands(commands: str) -> None:
    """Print commands of a workflow, in which the words of strangers are escaped already."""
    _print(redacted(commands), nl=False)


def say_or_write(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    from feedstock_tools.files.changes import write_whole

    if output is None:
        say(text, whole=True)
    else:
        write_whole(output, f"{text}\n")


def write_page(path: Path, page: str, *, beside: bool) -> None:
    """Write a page to a file and print a note: on stderr `beside` another form of the result."""
    from feedstock_tools.files.changes import write_whole

    write_whole(path, page)
    say(f"wrote {path}", err=beside)


def stream_of_logs(*, as_json: bool) -> TextIO:
    """Where logs go as they come: stdout, or stderr beside JSON; without their colours if none are wanted."""
    stream = sys.stderr if as_json else sys.stdout
    return cast("TextIO", _Uncoloured(stream)) if colour_wanted() is False else stream


class _Uncoloured:
    """A stream that loses colours on the way."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(uncoloured(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _print(text: str, *, err: bool = False, nl: bool = True) -> None:
    if _pulse is not None:
        _pulse.before_output()
    click.echo(text, err=err, nl=nl, color=colour_wanted())


def _fitted(text: str, *, err: bool) -> str:
    """A text in the width of the terminal that it goes to; names in notes and errors stay whole."""
    if _wide or not (sys.stderr if err else sys.stdout).isatty():
        return text
    return fitted(text, max(get_terminal_size().columns, _NARROWEST), cut=not err)


def _painted(text: str) -> str:
    """A text whose `error:`, `warning:` and so on have their colours, which click leaves out where none are wanted."""
    return _KIND.sub(lambda found: found[1] + click.style(found[2], fg=_KINDS[found[2]], bold=True), text)


def _painted_diff(text: str) -> str:
    def painted(line: str) -> str:
        colour = next((colour for start, colour in _LINES_OF_DIFFS if line.startswith(start)), None)
        return click.style(line, fg=colour) if colour else line

    return "\n".join(painted(line) for line in text.split("\n"))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return redacted(str(value)) if isinstance(value, PurePath) else value
