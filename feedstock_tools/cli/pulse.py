"""A sign of life of a command that has printed nothing for a second: what it is doing, and for how long.

The process that waits for the command prints it (`bounds.supervision.hold`), so that it comes whatever engine the
command waits in. Both share a small piece of memory.
"""

from __future__ import annotations

import os
import struct
import sys
import time

#: `never` in the environment: no signs of life.
VARIABLE = "FEEDSTOCK_TOOLS_PROGRESS"
#: Seconds without output after which a sign is given. In a terminal one line is kept up to date; elsewhere each further
#: line comes after twice the time, and at most this many seconds after the one before.
_FIRST, _LONGEST = 1.0, 60.0
#: The time of the last output, whether a sign stands in the last line of the terminal, whether signs are wanted.
_HEAD = struct.Struct("d??")
_TEXT = 200


class Pulse:
    """What a command shares with the process that waits for it. Make it before the fork."""

    def __init__(self, name: str) -> None:
        import mmap

        self._memory = mmap.mmap(-1, _HEAD.size + _TEXT)
        self._began = time.monotonic()
        self._next = _FIRST
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
        if not wanted or silent < _FIRST:
            self._next = _FIRST
            return
        if sys.stderr.isatty():
            os.write(2, b"\r\x1b[K" + self._sign(now)[: _width()])
            self._set(stands=True)
        elif silent >= self._next:
            os.write(2, self._sign(now) + b"\n")
            self._next = min(2 * self._next, self._next + _LONGEST)

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
