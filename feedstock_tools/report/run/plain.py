"""What `build` shows: the log as it comes, tables, the menu. Plain text, so that nothing heavy is imported for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.report.run.folding import UNFOLDED, Fold

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Event
    from feedstock_tools.builds.plan.needs import Work
    from feedstock_tools.builds.runs.observer import Progress
    from feedstock_tools.builds.runs.row import BuiltRow

__all__ = ["Terminal", "choose_from_menu", "described"]

#: Stages of the engine's log that say nothing to a reader; they are in the log file.
_QUIET_STAGES = frozenset({"index_subdir", "get_or_create_subdir"})


class Terminal:
    """A `Console` that writes the log of the rows to a stream as it comes; for one row at a time."""

    def __init__(self, stream: TextIO, fold: Fold = UNFOLDED) -> None:
        if isinstance(stream, TextIOWrapper):  # a log may hold what the terminal has no character for
            stream.reconfigure(errors="replace")
        self.stream = stream
        self._fold = fold

    def say(self, text: str) -> None:
        """See `Console`."""
        self.stream.write(text + "\n")
        self.stream.flush()

    def begin(self, work: Work) -> None:
        """See `Console`."""
        self.say(f"\n{self._fold.begin}== {described(work)}")

    def event(self, work: Work, event: Event) -> None:
        """See `Console`."""
        from feedstock_tools.builds.engines.contract import Built, Failed, Started

        if isinstance(event, Started):
            self.say(f"-- building {event.output}")
        elif isinstance(event, Built):
            self.say(f"-- built {event.package.name} in {event.seconds:.2f} s")
        elif isinstance(event, Failed):
            self.say(f"-- {event.output} failed: {event.reason}")
        elif event.stage not in _QUIET_STAGES and event.text.strip():
            self.say(event.text.rstrip())

    def end(self, work: Work, built: BuiltRow) -> None:
        """See `Console`."""
        if self._fold.end:
            self.say(self._fold.end)

    def progress(self, progress: Progress) -> None:
        """See `Console`: who reads along sees it."""


def described(work: Work) -> str:
    """A row, and what it is for: `linux_64_… (linux-64, CUDA 11.2, Python 3.11)`."""
    row = work.row
    python = f", Python {row.python}" if row.python else ""
    accelerator = f"CUDA {row.cuda}" if row.cuda else "CPU"
    return f"{row.name} ({work.configuration.platform}, {accelerator}{python})"


def choose_from_menu(configurations: Sequence[PlannedConfiguration]) -> PlannedConfiguration:
    """Ask for one of the configurations by number, as conda-smithy's script does.

    Raises:
        InputError: what was typed is no number of the menu, or nothing was.
    """
    sys.stderr.write("config not selected, please choose from the following:\n\n")
    for number, configuration in enumerate(configurations, 1):
        sys.stderr.write(f"{number}. {configuration.name}\n")
    sys.stderr.write("\n> ")
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    if not typed.isdecimal() or not 1 <= int(typed) <= len(configurations):
        what = f"'{typed}' is not one of the numbers 1 to {len(configurations)}" if typed else "no option selected"
        raise InputError(what)
    return configurations[int(typed) - 1]
