"""The matrix in lines and groups for people: for a terminal, as Markdown to paste into an issue, and for JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from feedstock_tools.channel.properties import properties_of
from feedstock_tools.report.run import are_same, comparison_words, library_lines, packages_json, verified_json
from feedstock_tools.wording import (
    code,
    counted,
    duration,
    fenced,
    html_code,
    markdown_table,
    markup,
    moment,
    named,
    size_text,
    table,
    values_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from feedstock_tools.builds.ledger.records import BuildRecord
    from feedstock_tools.builds.matrix.listing import Listed, ListedOutput
    from feedstock_tools.builds.matrix.matrix import ConfigurationState, Matrix, OutputState
    from feedstock_tools.feedstock.planned import PlannedConfiguration

#: What is shown in place of a table without lines.
NO_CONFIGURATIONS = "The feedstock has no configurations; 'feedstock-tools rerender' writes them."
_HEAD = ("configuration", "state", "packages", "when (UTC)", "took", "where")
#: Terminal codes, other control characters, marks that turn the direction of a line around, and lone surrogates.
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A configuration in a table.

    Attributes:
        title: its short name.
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
    """Outputs that are not done, of one state, for one reason; each with the title of its configuration. A
    configuration that was refused before its outputs were known has None in their place."""

    state: str
    reason: str
    outputs: tuple[tuple[str, OutputState | None], ...]

    @property
    def titles(self) -> tuple[str, ...]:
        """The configurations, each once."""
        return tuple(dict.fromkeys(title for title, _ in self.outputs))


def lines(matrix: Matrix) -> tuple[Line, ...]:
    """A line for each configuration, in the order of the plan."""
    return tuple(map(_line, matrix.configurations))


def _line(state: ConfigurationState) -> Line:
    by_number = {output.record.id: output.record for output in state.outputs if output.record}
    records = tuple(by_number.values())
    times = [record.seconds for record in records if record.seconds is not None]
    return Line(
        title=state.configuration.short_name,
        state=state,
        done=sum(output.state == "done" for output in state.outputs),
        total=len(state.outputs),
        ended=max((record.ended or record.started for record in records), default=""),
        seconds=sum(times) if times else None,
        machines=tuple(sorted({record.machine for record in records if record.machine})),
        origin=next((record.built_on.origin for record in records if record.built_on.made_here), ""),
        logs=_logs([build.record for build in state.builds if build.record]),
    )


def _logs(records: Sequence[BuildRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.log for record in records))


def by_state(table_lines: Sequence[Line]) -> dict[str, int]:
    """State → the number of configurations that have it, the most urgent first, without unused states."""
    from feedstock_tools.builds.matrix.matrix import STATES

    counts = Counter(line.state.state for line in table_lines)
    return {state: counts[state] for state in STATES if counts[state]}


def groups(table_lines: Sequence[Line]) -> tuple[Group, ...]:
    """Unfinished outputs with a reason, the most urgent first."""
    from feedstock_tools.builds.matrix.matrix import STATES

    collected: dict[tuple[str, str], list[tuple[str, OutputState | None]]] = {}
    for line in table_lines:
        if line.state.reason and not line.state.builds:
            collected.setdefault((line.state.state, printable(line.state.reason)), []).append((line.title, None))
        for output in line.state.builds:
            if output.reason:
                collected.setdefault((output.state, printable(output.reason)), []).append((line.title, output))
    unfinished = [Group(state, reason, tuple(outputs)) for (state, reason), outputs in collected.items()]
    return tuple(sorted(unfinished, key=lambda group: STATES.index(group.state)))


def printable(text: str) -> str:
    """A text of a build without terminal codes."""
    return _CONTROL.sub("", text)


def list_text(listed: Sequence[Listed], width: int | None = None) -> str:
    """A table with a line for each configuration.

    Args:
        width: the characters of a line, as for `table`.
    """
    head = ("name", "builds", "platform", "accelerator", "Python", "would be built", "built", "file in .ci_support")
    lines = [
        (
            entry.configuration.short_name,
            str(len(entry.configuration.rows)),
            entry.configuration.platform,
            accelerator(entry.configuration),
            " ".join(entry.configuration.pythons) or "-",
            _packages(entry),
            _built(entry.outputs),
            entry.configuration.name,
        )
        for entry in listed
    ]
    spare = ("file in .ci_support", "platform", "accelerator", "Python")
    return (
        table(head, lines, right=frozenset({1}), width=width, spare=spare, cut="would be built")
        if lines
        else NO_CONFIGURATIONS
    )


def list_json(listed: Sequence[Listed]) -> list[Mapping[str, Any]]:
    """An object for each configuration; `builds` is the number that its short name selects."""
    return [
        {
            **values_of(entry.configuration, "name", "short_name"),
            "builds": len(entry.configuration.rows),
            "platform": entry.configuration.platform,
            "accelerator": accelerator(entry.configuration),
            "pythons": list(entry.configuration.pythons),
            "built": entry.is_built,
            "outputs": [_output(output) for output in entry.outputs],
            "refusal": entry.configuration.refusal,
        }
        for entry in listed
    ]


def _output(listed: ListedOutput) -> Mapping[str, Any]:
    output = listed.output
    return {
        **values_of(output, "name", "version", "build"),
        "file": f"{output.subdir}/{output.file_name}" if output.identity else None,
        "python": listed.python,
        "built_on": listed.built_on,
    }


def accelerator(configuration: PlannedConfiguration) -> str:
    """`CUDA 12.9`, or `CPU`."""
    return f"CUDA {configuration.cuda}" if configuration.cuda else "CPU"


def _packages(listed: Listed) -> str:
    """`libgpuprobe, gpuprobe-base x4`: each output with the number of packages of that name."""
    names = [entry.output.name for entry in listed.outputs]
    if not names:
        return "unknown" if listed.configuration.refusal else "nothing"
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())


def _built(outputs: Sequence[ListedOutput]) -> str:
    done = [output for output in outputs if output.built_on]
    if not done:
        return "no"
    where = sorted({output.built_on for output in done if output.built_on})
    note = f" ({', '.join(where)})" if len(where) == 1 and properties_of(where[0]).made_here else ""
    return f"yes{note}" if len(done) == len(outputs) else f"{len(done)} of {len(outputs)}{note}"


def matrix_text(matrix: Matrix, width: int | None = None) -> str:
    """A table, the problems of unfinished configurations, and the number in each state.

    Args:
        width: the characters of a line of the table, as for `table`.
    """
    table_lines = lines(matrix)
    if not table_lines:
        return NO_CONFIGURATIONS
    rows = [_cells(line) for line in table_lines]
    parts = [table(_HEAD, rows, right=frozenset({2, 4}), width=width, spare=("where", "took", "when (UTC)"))]
    parts += [_group_text(matrix, group) for group in groups(table_lines)]
    if warnings := _libraries(table_lines):
        parts += ["", *warnings]
    return "\n".join([*parts, *_kept(matrix), *_compared(matrix), *_brought(matrix), "", _totals(table_lines)])


def _libraries(table_lines: Sequence[Line]) -> list[str]:
    outputs = [output for line in table_lines for output in line.state.outputs if output.state == "done"]
    return library_lines(output.record for output in outputs if output.record)


def _kept(matrix: Matrix) -> list[str]:
    """The shared builds that are kept for rows to come, each once."""
    kept = {shared.output.identity: shared for state in matrix.configurations for shared in state.shared}
    lines = [
        f"  {named(shared.output.stem)}: {size_text(_kept_size(matrix, shared))} in {_kept_folder(matrix, shared)}"
        for shared in kept.values()
        if shared.state == "done"
    ]
    return ["\nKept until all rows that inherit from it are done:", *lines] if lines else []


def _kept_folder(matrix: Matrix, shared: OutputState) -> Path:
    package = shared.record.packages[0] if shared.record else None
    return (matrix.artifacts / package.channel / package.file).parent if package else matrix.artifacts


def _kept_size(matrix: Matrix, shared: OutputState) -> int:
    from feedstock_tools.feedstock.cleaning import size_of_folder

    return size_of_folder(_kept_folder(matrix, shared))


def _compared(matrix: Matrix) -> list[str]:
    """The newest comparison of each package with a second build: how many are the same, and which are not."""
    newest = {record.sha256: record for record in matrix.comparisons}
    if not newest:
        return []
    others = [record for record in newest.values() if not are_same([record])]
    same = len(newest) - len(others)
    listed = [f"  {named(record.file.rpartition('/')[2])}: {comparison_words(record)}" for record in others]
    return [
        f"\n{counted(len(newest), 'package')} compared with a second build: {same} with the same contents.",
        *listed,
    ]


def _brought(matrix: Matrix) -> list[str]:
    """The tests and comparisons of the packages that do not count."""
    if not matrix.brought:
        return []
    return [f"\nLeft out {counted(matrix.brought, 'result')} of tests and second builds: brought, not this user's."]


def _cells(line: Line) -> tuple[str, ...]:
    where = ", ".join(line.machines) + (f" ({line.origin})" if line.origin else "")
    packages = f"{line.done} of {line.total}" if line.total else "-"
    return line.title, line.state.state, packages, moment(line.ended), duration(line.seconds), where.strip()


def _totals(table_lines: Sequence[Line]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in by_state(table_lines).items())
    return f"{counted(len(table_lines), 'configuration')}: {counts}"


def _group_text(matrix: Matrix, group: Group) -> str:
    first, *rest = group.reason.splitlines() or [""]
    text = [f"\n{group.state}: {named(_who(group))}: {first}", *(f"  {line}" for line in rest)]
    logs = dict.fromkeys(output.record.log for _, output in group.outputs if output and output.record)
    if group.state in ("failed", "interrupted"):
        text += [f"  Log: {matrix.artifacts / log}" for log in logs]
    return "\n".join(text)


def _who(group: Group) -> str:
    titles = group.titles
    if len(titles) > 4:
        return f"{titles[0]} … {titles[-1]} ({len(titles)} configurations)"
    if len(group.outputs) == 1 and (only := group.outputs[0][1]):
        return f"{titles[0]} {only.output.stem}"
    return ", ".join(titles)


def matrix_markdown(matrix: Matrix) -> str:
    """A table with a line for each configuration, and the problems below it, folded."""
    table_lines = lines(matrix)
    out = [f"**{markup(matrix.feedstock)}**: {_totals(table_lines)} ({moment(matrix.at)} UTC)", ""]
    out += markdown_table(_HEAD, map(_markdown_cells, table_lines))
    for group in groups(table_lines):
        out += ["", *_group_markdown(group)]
    if warnings := _libraries(table_lines):
        out += ["", *(f"- {markup(line)}" for line in warnings)]
    return "\n".join(out)


def _markdown_cells(line: Line) -> list[str]:
    title, state, *rest = _cells(line)
    return [code(title), state if state in ("done", "nothing") else f"**{state}**", *map(markup, rest)]


def _group_markdown(group: Group) -> list[str]:
    summary = f"<summary>{group.state}: {html_code(_who(group))}</summary>"
    return [f"<details>{summary}", "", fenced(group.reason.splitlines()), "", "</details>"]


def matrix_json(matrix: Matrix) -> dict[str, Any]:
    """The whole matrix as JSON values; times are UTC, paths absolute."""
    table_lines = lines(matrix)
    return {
        "feedstock": matrix.feedstock,
        "artifacts": str(matrix.artifacts),
        "at": matrix.at,
        "counts": by_state(table_lines),
        "configurations": [_configuration_json(matrix, line) for line in table_lines],
    }


def _configuration_json(matrix: Matrix, line: Line) -> dict[str, Any]:
    configuration = line.state.configuration
    return {
        **values_of(configuration, "name", "short_name", "platform"),
        "accelerator": accelerator(configuration),
        "pythons": list(configuration.pythons),
        **values_of(line.state, "state", "reason"),
        **values_of(line, "done", "total"),
        "ended": line.ended or None,
        "seconds": line.seconds,
        "machines": list(line.machines),
        "rows": {row.name: line.state.of_row(row.name) for row in configuration.rows},
        "outputs": [_output_json(matrix, output) for output in line.state.outputs],
        "shared": [_output_json(matrix, shared) for shared in line.state.shared],
    }


def _output_json(matrix: Matrix, state: OutputState) -> dict[str, Any]:
    output = state.output
    return {
        **values_of(output, "name", "version", "build", "subdir"),
        "rows": [row.name for row in state.rows],
        **values_of(state, "state", "reason", "changed"),
        "build_record": _record_json(matrix, state.record) if state.record else None,
    }


def _record_json(matrix: Matrix, record: BuildRecord) -> dict[str, Any]:
    plain = ("id", "identity", "result", "reason", "started", "ended", "seconds", "engine", "machine", "attempt")
    return {
        "compared": verified_json(matrix.compared(record)),
        **values_of(record, *plain, "cores", "peak_memory", "commit_id"),
        "marks": dict(record.marks),
        "log": str(matrix.artifacts / record.log),
        "packages": packages_json(matrix.artifacts, record.packages),
    }


def log_file(artifacts: Path, log: str) -> Path | None:
    """A log file of the artifacts folder; None if it is missing or outside of the folder."""
    path = (artifacts / log).resolve()
    return path if path.is_relative_to(artifacts.resolve()) and path.is_file() else None
