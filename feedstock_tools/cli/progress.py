"""What a command is doing, besides its output.

A sign of life says it once the command has printed nothing for a second in a terminal, or for five minutes elsewhere.
The process that waits for the command prints it (`bounds.supervision.hold`), so that it comes whatever engine the
command waits in; both share a small piece of memory. `--verbose` lists the files that the command reads and the
programs that it runs, which Python reports to an audit hook. What an engine reads by itself, such as a channel's index,
is not among them; a stage names it.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from feedstock_tools.data import PACKAGE
from feedstock_tools.stages import listen

#: `never` in the environment: no signs of life.
VARIABLE = "FEEDSTOCK_TOOLS_PROGRESS"
#: Seconds without output after which a sign is given: in a terminal, where one line is kept up to date, and elsewhere.
_IN_A_TERMINAL, _ELSEWHERE = 1.0, 300.0
#: The time of the last output, whether a sign stands in the last line of the terminal, whether signs are wanted.
_HEAD = struct.Struct("d??")
_TEXT = 200


class Pulse:
    """What a command shares with the process that waits for it. Make it before the fork."""

    def __init__(self, name: str) -> None:
        import mmap

        self._memory = mmap.mmap(-1, _HEAD.size + _TEXT)
        self._began = time.monotonic()
        self._next = _ELSEWHERE
        self._memory[: _HEAD.size] = _HEAD.pack(self._began, False, os.environ.get(VARIABLE) != "never")
        self.stage(name)

    def stage(self, text: str) -> None:
        """Note what the command does now."""
        content = text.encode(errors="replace")[: _TEXT - 1]
        self._memory[_HEAD.size : _HEAD.size + len(content) + 1] = content + b"\0"

    def end(self) -> None:
        """Give no more signs: the command prints nothing else that somebody waits for."""
        self._set(wanted=False)

    def before_output(self) -> None:
        """Note that the command prints something now, and clear the line of a sign."""
        _, stands, wanted = self._get()
        self._memory[: _HEAD.size] = _HEAD.pack(time.monotonic(), False, wanted)
        if stands:
            os.write(2, b"\r\x1b[K")

    def beat(self) -> None:
        """Print a sign if one is due; called several times a second by the process that waits."""
        last, _, wanted = self._get()
        now = time.monotonic()
        silent = now - last
        if not wanted or silent < _IN_A_TERMINAL:
            self._next = _ELSEWHERE
        elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            os.write(2, b"\r\x1b[K" + self._sign(now)[: _width()])
            self._set(stands=True)
        elif silent >= self._next:
            os.write(2, self._sign(now) + b"\n")
            self._next += _ELSEWHERE

    def _sign(self, now: float) -> bytes:
        text = self._memory[_HEAD.size :].partition(b"\0")[0]
        return b"-- %s, %.0f s" % (text, now - self._began)

    def _get(self) -> tuple[float, bool, bool]:
        last, stands, wanted = _HEAD.unpack(self._memory[: _HEAD.size])
        return last, stands, wanted

    def _set(self, *, stands: bool | None = None, wanted: bool | None = None) -> None:
        last, *before = self._get()
        now = (before[0] if stands is None else stands, before[1] if wanted is None else wanted)
        self._memory[: _HEAD.size] = _HEAD.pack(last, *now)


def _width() -> int:
    try:
        return max((os.get_terminal_size(2).columns or 80) - 1, 20)  # 0 is a terminal that nobody gave a size
    except OSError:
        return 79


#: Folders whose files are parts of programs and not input.
_OWN = tuple({os.path.realpath(folder) + os.sep for folder in (sys.prefix, sys.base_prefix, str(PACKAGE))})
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_WRITING = os.O_WRONLY | os.O_RDWR


def trace(say: Callable[[str], None]) -> None:
    """Report from now on what this process and its forks read, run and do; a hook stays until the process ends."""
    began, process, known, busy = time.perf_counter(), os.getpid(), set[str](), False

    def report(text: str) -> None:
        say(f"{time.perf_counter() - began:7.3f} s  {text}")

    def hook(event: str, arguments: Sequence[Any]) -> None:
        nonlocal busy
        if busy or event not in ("open", "subprocess.Popen") or os.getpid() != process:
            return  # what forks print may be somebody's log
        busy = True  # printing may open files, too
        try:
            if event == "subprocess.Popen":
                report(f"runs {_command(arguments[1])}")
            elif (path := _input(*arguments)) and path not in known:
                known.add(path)
                report(f"reads {path}")
        finally:
            busy = False

    sys.addaudithook(hook)
    listen(report)


def _command(arguments: object) -> str:
    if isinstance(arguments, (list, tuple)):
        import shlex  # --verbose alone needs it

        return shlex.join(os.fsdecode(each) for each in arguments)
    return str(arguments)


def _input(path: object, mode: str | None, flags: int) -> str | None:
    """The absolute path of a file that is opened to be read; None for others, and for those of programs."""
    if not isinstance(path, (str, bytes, os.PathLike)) or (flags or 0) & _WRITING:
        return None
    name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - no further look at the disk
    if name.startswith(_SYSTEM) or name.endswith((".py", ".pyc", ".so")) or name.startswith(_OWN):
        return None
    return name
