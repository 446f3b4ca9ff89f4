"""A terminal's screen: what programs print becomes rows of coloured text.

It knows what the commands of a session use: lines, colours, moving up, and clearing. Lines that are longer than the
screen are cut off, as after `tput rmam`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: A character with its style: names of classes, such as `bold red`.
Cell = tuple[str, str]
Row = tuple[Cell, ...]

_PART = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|(.)", re.DOTALL)
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


@dataclass
class Screen:
    """A screen of some rows and columns, which scrolls."""

    rows: int
    columns: int
    lines: list[list[Cell]] = field(default_factory=lambda: [[]])
    at: tuple[int, int] = (0, 0)
    style: frozenset[str] = frozenset()

    def write(self, text: str) -> None:
        """Take what a program prints."""
        for part in _PART.finditer(text):
            if part[3] is not None:
                self._character(part[3])
            elif part[2] is not None:
                self._sequence(part[1], part[2])

    def shown(self) -> tuple[Row, ...]:
        """The rows that are seen, from the top."""
        return tuple(tuple(line[: self.columns]) for line in self.lines[-self.rows :])

    def rows_from(self, row: int) -> tuple[Row, ...]:
        """The rows from a number on, those that have scrolled away too."""
        return tuple(tuple(line[: self.columns]) for line in self.lines[row:])

    def _character(self, character: str) -> None:
        row, column = self.at
        if character == "\r":
            self.at = row, 0
        elif character == "\n":
            self.at = row + 1, column
            while len(self.lines) <= row + 1:
                self.lines.append([])
        elif character >= " ":
            line = self.lines[row]
            line += [(" ", "")] * (column + 1 - len(line))
            line[column] = (character, " ".join(sorted(self.style)))
            self.at = row, column + 1

    def _sequence(self, numbers: str, what: str) -> None:
        row, column = self.at
        values = [int(number) for number in numbers.split(";") if number.isdigit()]
        if what == "m":
            for value in values or [0]:
                self._set_style(value)
        elif what == "A":
            self.at = max(0, row - (values or [1])[0]), column
        elif what == "K":
            self.lines[row] = [] if values == [2] else self.lines[row][:column]
        elif what not in "hl":  # the cursor, shown or hidden
            raise NotImplementedError(f"a terminal's sequence {numbers}{what}")

    def _set_style(self, value: int) -> None:
        colours = frozenset(_COLOURS)
        if value == 0:
            self.style = frozenset()
        elif value == 1:
            self.style |= {"bold"}
        elif value == 22:
            self.style -= {"bold"}
        elif 30 <= value < 38:
            self.style = self.style - colours | {_COLOURS[value - 30]}
        elif value == 39:
            self.style -= colours
