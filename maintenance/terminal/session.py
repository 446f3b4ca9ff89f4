"""What the README's session shows: its commands, the folder that they run in, and how fast it plays."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintenance.terminal.recording import COLUMNS, ROWS, record
from maintenance.terminal.screen import Row, Screen

ROOT = Path(__file__).resolve().parents[2]
TITLE = "A terminal: asking what goes with CUDA 11.2, a feedstock from a spec, and 13 packages built in parallel"
#: Each with how many lines of its output the still picture shows, from its beginning and its end.
COMMANDS: Mapping[str, tuple[int, int]] = {
    "feedstock-tools cuda resolve cuda=11.2 gcc=11": (5, 0),
    "feedstock-tools generate hello": (2, 0),
    "feedstock-tools rerender hello --quiet": (4, 0),
    "feedstock-tools build linux_64_cuda11.2 --jobs 2 --feedstock gpuprobe": (5, 2),
    "feedstock-tools status linux_64_cuda11.2 --feedstock gpuprobe": (5, 0),
}
#: Seconds: of one typed character, before the first and after a command, at the end, and the longest pause.
_KEY, _THINK, _REST, _END, _PAUSE = 0.035, 0.5, 1.6, 5.0, 0.8
#: Screens that follow each other faster are one.
_FRAME = 0.1
#: Characters that appear at once as a command is typed.
_TYPED = 4


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


def played(commands: Mapping[str, tuple[int, int]], folder: Path) -> Played:
    """Run commands, as `COMMANDS` names them, one after another.

    The folder is shown as /home/you and this machine as `laptop`; pauses are shortened.
    """
    environment = environment_of(folder)
    screen, now = Screen(ROWS, COLUMNS), 0.0
    screens: list[tuple[float, tuple[Row, ...]]] = []
    still: list[Row] = []

    def show() -> None:
        if screens and now - screens[-1][0] < _FRAME:
            screens[-1] = (screens[-1][0], screen.shown())
        elif not screens or screens[-1][1] != screen.shown():
            screens.append((now, screen.shown()))

    for command, (first, last) in commands.items():
        begin = screen.at[0]
        screen.write("\x1b[32m$\x1b[0m ")
        show()
        now += _THINK
        for part in _parts(command):
            screen.write(f"\x1b[1m{part}\x1b[0m")
            now += _KEY * len(part)
            show()
        screen.write("\r\n")
        before = 0.0
        for printed in record(command, folder, environment):
            now += min(printed.seconds - before, _PAUSE)
            before = printed.seconds
            screen.write(_named(printed.content.decode(errors="replace"), folder))
            show()
        still += _shortened(screen.rows_from(begin), first, last)
        now += _REST
    return Played(tuple(screens), now + _END, tuple(still))


def _shortened(rows: Sequence[Row], first: int, last: int) -> Iterator[Row]:
    """The first row, which is the command, some rows of the beginning and end, and how many are left out."""
    while rows and not rows[-1]:
        rows = rows[:-1]
    left_out = len(rows) - 1 - first - last
    if left_out < 2:
        yield from rows
        return
    yield from rows[: 1 + first]
    yield tuple((character, "faint") for character in f"… {left_out} more lines")
    yield from rows[len(rows) - last :]


def _parts(command: str) -> Iterator[str]:
    return (command[at : at + _TYPED] for at in range(0, len(command), _TYPED))


def _named(text: str, folder: Path) -> str:
    return text.replace(str(folder), "/home/you").replace(f" {platform.node()} ", " laptop ")
