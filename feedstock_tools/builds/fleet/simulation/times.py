"""The durations of simulated rows: from the ledger, from a file, or one time for all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from feedstock_tools.builds.plan.order import in_order
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PackageId
from feedstock_tools.reading import read_text
from feedstock_tools.wording import counted, time_of
from feedstock_tools.yaml_reading.nodes import parse_document

_NAMED = 5


def read_times(path: Path) -> dict[str, float]:
    """The seconds of rows by name, configuration or glob over them, from a file such as `linux_64_*: 3 h`.

    Raises:
        InputError: it cannot be read, or has mistakes, each with line and column.
    """
    document = parse_document(read_text(path, within=None), path)
    if not isinstance(document.content, dict):
        raise InputError("expected rows with their times, such as `linux_64_*: 3 h`", path=path, line=1)
    mistakes, times = list(document.mistakes), {}
    for name, text in document.content.items():
        try:
            times[str(name)] = time_of(str(text))
        except InputError as error:
            place = document.place((name,))
            wrong = error.mistakes[0]
            mistakes.append(Mistake(wrong.message, path, place.line, place.column, wrong.hint))
    if mistakes:
        raise InputError.of(mistakes)
    return times


def with_times(rows: Sequence[Row], times: Mapping[str, float], otherwise: float | None) -> tuple[Row, ...]:
    """Some rows with a time for each missing output, in the order in which a run would begin them.

    A row takes the time given for it (the first name or glob that matches), else that of earlier builds or its spec,
    else `otherwise`. A given time is that of the outputs that a row makes itself, each an equal part: what rows share
    is made by the first of them.

    Args:
        rows: in their order, which stays if no row takes another time than before.
        times: as of `read_times`.

    Raises:
        InputError: the time of a row remains unknown.
    """
    makers = ((row, output) for row in rows for output in row.wanted.makes)
    known = {output.package_id: row.wanted.seconds.get(output.name) for row, output in makers}
    timed: list[Row] = []
    unknown: list[str] = []
    for row in rows:
        override = next((seconds for name, seconds in times.items() if _matches(name, row)), None)
        recorded = {
            output.name: seconds for output in row.wanted.missing if (seconds := known[output.package_id]) is not None
        }
        if override is None and len(recorded) < len(row.wanted.missing):
            override = otherwise
        if override is not None:
            parts = {output.name: override / len(row.wanted.missing) for output in row.wanted.missing}
            timed.append(_changed(row, makes=row.wanted.missing, seconds=parts, seconds_source="given"))
        elif len(recorded) == len(row.wanted.missing):
            timed.append(_changed(row, seconds=recorded))
        else:
            unknown.append(row.name)
    if unknown:
        named = ", ".join(unknown[:_NAMED]) + (" …" if len(unknown) > _NAMED else "")
        hint = "Give them in a file with --times, or one time for all of them with --time."
        raise InputError(f"the time of {counted(len(unknown), 'row')} is unknown: {named}", hint=hint)
    if not any(row.wanted.seconds_source == "given" for row in timed):
        return tuple(timed)
    return tuple(_each_once(in_order([_changed(row, makes=row.wanted.missing) for row in timed])))


def _each_once(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows, each with the outputs that no earlier one makes, and a given time divided among these."""
    packages: set[PackageId] = set()
    for row in rows:
        makes = tuple(output for output in row.wanted.missing if output.package_id not in packages)
        packages |= row.wanted.packages
        seconds = row.wanted.seconds
        if row.wanted.seconds_source == "given" and makes:
            seconds_each = sum(seconds.values()) / len(makes)
            seconds = {**seconds, **{output.name: seconds_each for output in makes}}
        yield _changed(row, makes=makes, seconds=seconds)


def _changed(row: Row, **changes: Any) -> Row:
    return replace(row, wanted=replace(row.wanted, **changes))


def _matches(name: str, row: Row) -> bool:
    return fnmatchcase(row.name, name) or fnmatchcase(row.configuration, name)
