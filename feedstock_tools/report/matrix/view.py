"""The matrix as lines for people: one configuration each, with time, machine and duration, and the problems in
groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger.records import BuildRecord
    from feedstock_tools.builds.matrix.matrix import ConfigurationState, Matrix, OutputState

#: Terminal codes, other control characters, marks that turn the direction of a line around, and lone surrogates.
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A configuration in a table.

    Attributes:
        title: its short name, or its name in `.ci_support` if others have the same short name.
        done: how many of its `total` packages are done.
        ended: the end (or, if still running, the start) of the newest build behind its state; UTC.
        seconds: the total time of those builds.
        machines: their machines; `origin` is that of the channels that they were built on, if these have one.
        logs: their log files, below the artifacts folder, each once.
    """

    title: str
    state: ConfigurationState
    done: int
    total: int
    ended: str
    seconds: float | None
    machines: tuple[str, ...]
    origin: str
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Outputs that are not done, of one state, for one reason; each with the title of its configuration."""

    state: str
    reason: str
    outputs: tuple[tuple[str, OutputState], ...]

    @property
    def titles(self) -> tuple[str, ...]:
        """The configurations, each once."""
        return tuple(dict.fromkeys(title for title, _ in self.outputs))


def lines(matrix: Matrix) -> tuple[Line, ...]:
    """A line for each configuration, in the order of the plan."""
    shared = Counter(state.configuration.short_name for state in matrix.configurations)
    return tuple(_line(state, shared[state.configuration.short_name] > 1) for state in matrix.configurations)


def _line(state: ConfigurationState, ambiguous: bool) -> Line:
    by_number = {output.record.id: output.record for output in state.outputs if output.record}
    records = tuple(by_number.values())
    times = [record.seconds for record in records if record.seconds is not None]
    return Line(
        title=state.configuration.name if ambiguous else state.configuration.short_name,
        state=state,
        done=sum(output.state == "done" for output in state.outputs),
        total=len(state.outputs),
        ended=max((record.ended or record.started for record in records), default=""),
        seconds=sum(times) if times else None,
        machines=tuple(sorted({record.machine for record in records if record.machine})),
        origin=next((record.built_on.origin for record in records if record.built_on.made_here), ""),
        logs=_logs(records),
    )


def _logs(records: Sequence[BuildRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.log for record in records))


def by_state(table_lines: Sequence[Line]) -> dict[str, int]:
    """State → the number of configurations that have it, the most urgent first, without unused states."""
    from feedstock_tools.builds.matrix.matrix import STATES

    counts = Counter(line.state.state for line in table_lines)
    return {state: counts[state] for state in STATES if counts[state]}


def groups(table_lines: Sequence[Line]) -> tuple[Group, ...]:
    """Unfinished outputs with a reason, the most urgent first; none for a configuration without outputs."""
    from feedstock_tools.builds.matrix.matrix import STATES

    collected: dict[tuple[str, str], list[tuple[str, OutputState]]] = {}
    for line in table_lines:
        for output in line.state.outputs:
            if output.reason:
                collected.setdefault((output.state, printable(output.reason)), []).append((line.title, output))
    unfinished = [Group(state, reason, tuple(outputs)) for (state, reason), outputs in collected.items()]
    return tuple(sorted(unfinished, key=lambda group: STATES.index(group.state)))


def printable(text: str) -> str:
    """A text of a build without terminal codes."""
    return _CONTROL.sub("", text)
