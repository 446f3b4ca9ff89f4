"""Record the session of the README: python -m maintenance.terminal [FILE]

Commands really run in a pseudo-terminal, and their screens become one animated SVG, readable on light and dark pages,
without scripts: docs/images/session.svg where no FILE is given. It begins with a still picture, the whole session at a
glance. Nothing else is shown to people who asked their system for less motion, on paper, and by programs that know no
animations. Then each row is one text that is visible from its first screen to its last.

It takes half a minute; builds run on the stand-in channel if conda-forge cannot be reached.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

import pexpect
import pyte

#: A row: characters with their styles, names of classes such as `bold red`.
Row = tuple[tuple[str, str], ...]
#: A row's place and text, with the numbers of its first screen and of the one that follows its last.
Shown = tuple[int, Row, int, int]

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, ROWS = 100, 30
#: The most characters of a line, and rows of one command's output.
_WIDEST, _MOST_ROWS = 1000, 500
TITLE = "A terminal: asking what goes with CUDA 11.2, a feedstock from a spec, and 13 packages built in parallel"
#: Each with how many lines of its output the still picture shows, from its beginning and its end.
COMMANDS: Mapping[str, tuple[int, int]] = {
    "feedstock-tools cuda resolve cuda=11.2 gcc=11": (2, 1),
    "feedstock-tools generate hello": (2, 0),
    "feedstock-tools rerender hello --quiet": (4, 0),
    "feedstock-tools build linux_64_cuda11.2 --jobs 2 --feedstock gpuprobe": (5, 1),
    "feedstock-tools status linux_64_cuda11.2 --feedstock gpuprobe": (5, 1),
}
#: Seconds: of one typed character, before the first and after a command, at the end, and of a command's output. The
#: whole stays under 15 seconds.
_KEY, _THINK, _REST, _END, _OUTPUT = 0.01, 0.2, 0.7, 1.0, 1.0
#: Screens that follow each other faster are one.
_FRAME = 0.1
#: Characters that appear at once as a command is typed.
_TYPED = 4


_CHARACTER, _LINE, _MARGIN, _SIZE = 8.43, 19, 16, 14
#: How long the still picture is shown before the first screen, in seconds.
_STILL = 1.0
_STYLE = """\
:root{--back:#fff;--text:#1f2328;--edge:#d0d7de;--faint:#59636e;--red:#cf222e;--green:#1a7f37;--yellow:#9a6700;--cyan:#1b7c83}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--edge:#30363d;--faint:#9198a1;--red:#ff7b72;\
--green:#3fb950;--yellow:#d29922;--cyan:#39c5cf}}
rect{fill:var(--back);stroke:var(--edge)}
text{fill:var(--text);font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
.played text{visibility:hidden}
.bold{font-weight:600}.faint{fill:var(--faint)}
.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}.cyan{fill:var(--cyan)}
"""
_MOVING = """\
@media screen and (prefers-reduced-motion:no-preference){
.still,.played text{animation-duration:%.2fs;animation-timing-function:step-end;animation-iteration-count:infinite}
.still{animation-name:still}@keyframes still{0%%{visibility:visible}%.2f%%{visibility:hidden}}
%s}
"""


@dataclass(frozen=True, slots=True)
class Played:
    """A session: screens with the seconds at which each begins, when it ends, and its rows at a glance."""

    screens: tuple[tuple[float, tuple[Row, ...]], ...]
    seconds: float
    still: tuple[Row, ...]


def prepared(folder: Path) -> Path:
    """Lay out the session's folder: copies of two examples, with nothing built."""
    for name in ("hello", "gpuprobe"):
        ignored = shutil.ignore_patterns("build_artifacts", "__pycache__")
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=ignored)
    return folder


def environment_of(folder: Path) -> Mapping[str, str]:
    """The variables of its commands: the program of this checkout, a cache of its own, colours."""
    program = folder / ".bin" / "feedstock-tools"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m feedstock_tools "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), sysconfig.get_path("scripts"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder / ".cache")}


class Terminal:
    """A screen of some rows, whose lines are cut off at its width."""

    def __init__(self, rows: int) -> None:
        self._screen = pyte.Screen(_WIDEST, rows)
        self._stream = pyte.Stream(self._screen)

    def write(self, text: str) -> None:
        """Take what a program prints."""
        self._stream.feed(text)

    def rows(self) -> tuple[Row, ...]:
        """The rows that are seen, from the top to the last one with a text."""
        found = [tuple(_cells(self._screen.buffer[place])) for place in range(self._screen.lines)]
        while found and not found[-1]:
            found.pop()
        return tuple(found)


def _cells(line: Mapping[int, pyte.screens.Char]) -> Iterator[tuple[str, str]]:
    written = [column for column, character in line.items() if character.data != " "]
    for column in range(min(COLUMNS, max(written, default=-1) + 1)):
        character = line[column]
        colour = {"default": "", "brown": "yellow"}.get(character.fg, character.fg)
        yield character.data, " ".join(filter(None, ("bold" if character.bold else "", colour)))


def played(commands: Mapping[str, tuple[int, int]], folder: Path) -> Played:
    """Run commands, as `COMMANDS` names them, one after another.

    The folder is shown as /home/you and this machine as `laptop`; what takes longer than a moment runs in a moment.

    Raises:
        RuntimeError: a command ends with a traceback; other errors are part of a session.
    """
    environment = environment_of(folder)
    terminal, now = Terminal(ROWS), 0.0
    screens: list[tuple[float, tuple[Row, ...]]] = []
    still: list[Row] = []

    def show() -> None:
        if screens and now - screens[-1][0] < _FRAME:
            screens[-1] = (screens[-1][0], terminal.rows())
        elif not screens or screens[-1][1] != terminal.rows():
            screens.append((now, terminal.rows()))

    for command, (first, last) in commands.items():
        whole = Terminal(_MOST_ROWS)
        terminal.write("\x1b[32m$\x1b[0m ")
        whole.write(f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m\r\n")
        show()
        now += _THINK
        for part in (command[at : at + _TYPED] for at in range(0, len(command), _TYPED)):
            terminal.write(f"\x1b[1m{part}\x1b[0m")
            now += _KEY * len(part)
            show()
        terminal.write("\r\n")
        pieces = list(printed_by(command, folder, environment))
        begun, pace = now, min(1.0, _OUTPUT / pieces[-1][0])
        for seconds, printed in pieces:
            now = begun + seconds * pace
            for each in (terminal, whole):
                each.write(printed.replace(str(folder), "/home/you").replace(f" {platform.node()} ", " laptop "))
            show()
        still += _shortened(whole.rows(), first, last)
        now += _REST
    return Played(tuple(screens), now + _END, tuple(still))


def printed_by(command: str, folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[float, str]]:
    """What a command prints in a folder, each piece with the seconds since its start."""
    program, *arguments = shlex.split(command)
    began, whole = time.monotonic(), ""
    child = pexpect.spawn(
        program, arguments, cwd=str(folder), env=dict(environment), dimensions=(ROWS, COLUMNS), timeout=None,
        encoding="utf-8", codec_errors="replace",
    )  # fmt: skip
    while True:
        try:
            text = child.read_nonblocking(65536, timeout=None)
        except pexpect.EOF:
            break
        whole += text
        yield time.monotonic() - began, text
    child.close()
    if child.exitstatus not in (0, 1) or "Traceback" in whole:
        raise RuntimeError(f"{command}: {child.exitstatus}\n{whole}")


def _shortened(rows: Sequence[Row], first: int, last: int) -> Iterator[Row]:
    """The first row, which is the command, some rows of the beginning and end, and how many are left out."""
    left_out = len(rows) - 1 - first - last
    if left_out < 2:
        yield from rows
        return
    yield from rows[: 1 + first]
    yield tuple((character, "faint") for character in f"… {left_out} more lines")
    yield from rows[len(rows) - last :]


def drawn(session: Played, size: tuple[int, int], title: str) -> str:
    """The SVG of a session on a screen of some rows and columns, with a title for screen readers."""
    (rows, columns), end = size, session.seconds + _STILL
    times = [_STILL + begin for begin, _ in session.screens]
    shown = list(_intervals([screen for _, screen in session.screens]))
    names = {span: f"s{number}" for number, span in enumerate(dict.fromkeys(span[2:] for span in shown))}
    width, height = columns * _CHARACTER + 2 * _MARGIN, rows * _LINE + 2 * _MARGIN
    frames = "".join(_keyframes(name, times, end, *span) for span, name in names.items())
    style = _STYLE % _SIZE + _MOVING % (end, 100 * _STILL / end, frames)
    stands = "\n".join(_text(place, row) for place, row in enumerate(session.still))
    played = "\n".join(_text(place, row, names[begin, past]) for place, row, begin, past in shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>\n{style}</style>\n'
        f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>\n'
        f'<g class="still">\n{stands}\n</g>\n<g class="played">\n{played}\n</g>\n</svg>\n'
    )


def _intervals(screens: Sequence[Sequence[Row]]) -> Iterator[Shown]:
    """The texts of all rows, each from the screen in which it appears to that in which it is gone."""
    for place in range(max(map(len, screens))):
        texts = [screen[place] if place < len(screen) else () for screen in screens]
        begin = 0
        for text, same in groupby(texts):
            end = begin + len(list(same))
            if any(character != " " for character, _ in text):
                yield place, text, begin, end
            begin = end


def _keyframes(name: str, times: Sequence[float], seconds: float, begin: int, end: int) -> str:
    steps = f"{100 * times[begin] / seconds:.2f}%{{visibility:visible}}"
    steps += f"{100 * times[end] / seconds:.2f}%{{visibility:hidden}}" if end < len(times) else ""
    return f".played .{name}{{animation-name:{name}}}@keyframes {name}{{0%{{visibility:hidden}}{steps}}}\n"


def _text(place: int, row: Row, name: str = "") -> str:
    y = _MARGIN + place * _LINE + _SIZE
    classes = f' class="{name}"' if name else ""
    return f'<text{classes} x="{_MARGIN}" y="{y}">{_spans(row)}</text>'


def _spans(row: Row) -> str:
    parts = []
    for style, cells in groupby(row, key=lambda cell: cell[1]):
        text = escape("".join(character for character, _ in cells), quote=False)
        parts.append(f'<tspan class="{style}">{text}</tspan>' if style else text)
    return "".join(parts).rstrip()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images" / "session.svg"
    with tempfile.TemporaryDirectory() as scratch:
        session = played(COMMANDS, prepared(Path(scratch).resolve()))
    target.write_text(drawn(session, (ROWS, COLUMNS), TITLE), encoding="utf-8")
    said = f"{len(session.screens)} screens, {session.seconds:.0f} s, {target.stat().st_size / 1024:.0f} KiB"
    sys.stdout.write(f"{target}: {said}\n")
