"""The plan of a run for a terminal, as Markdown, and as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Host, local_host, portion_on
from feedstock_tools.builds.plan.refusals import in_words
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.wording import counted, duration, size_text, table

_HEAD = ("", "row", "builds", "cores", "memory", "disk", "GPU", "about", "image")
_RIGHT = frozenset({0, 3, 4, 5, 7})


def plan_text(agenda: Agenda) -> str:
    """A table of the rows to build in order, the finished rows, refusals, and the expected duration."""
    host = local_host(agenda.capacity, agenda.jobs)
    rows = [_cells(number, row, host) for number, row in enumerate(agenda.todo, 1)]
    parts = [table(_HEAD, rows, right=_RIGHT)] if rows else []
    return "\n".join([*parts, *_notes(agenda)])


def plan_markdown(agenda: Agenda) -> str:
    """The same, to paste into an issue."""
    host = local_host(agenda.capacity, agenda.jobs)
    head = [f"| {' | '.join(_HEAD)} |", f"|{'|'.join('--:' if at in _RIGHT else '---' for at in range(len(_HEAD)))}|"]
    rows = [f"| {' | '.join(_cells(number, row, host))} |" for number, row in enumerate(agenda.todo, 1)]
    return "\n".join([*(head if rows else []), *rows, "", *(f"- {note}" for note in _notes(agenda))]).lstrip()


def plan_json(agenda: Agenda) -> Mapping[str, Any]:
    """The same; bytes and seconds."""
    host = local_host(agenda.capacity, agenda.jobs)
    return {
        "jobs": agenda.jobs,
        "cores": len(agenda.capacity.cores),
        "memory": agenda.capacity.memory,
        "seconds": agenda.seconds,
        "rows_without_known_time": agenda.unknown,
        "todo": [_values(row, host) for row in agenda.todo],
        "up_to_date": [_values(row, host) for row in agenda.done],
        "refused": dict(agenda.refused),
    }


def _values(row: Row, host: Host) -> dict[str, Any]:
    portion = portion_on(row.wanted.needs, host)
    return {
        "configuration": row.configuration,
        "row": row.name,
        "platform": row.platform,
        "builds": [output.stem for output in row.wanted.makes],
        "done": sorted(row.wanted.done),
        "cores": portion.cores,
        "memory": portion.memory,
        "disk": row.wanted.needs.disk,
        "gpu": row.wanted.needs.gpu,
        "image": _image(row),
        "seconds": row.wanted.expected,
        "from": {**portion.source, "seconds": row.wanted.seconds_source},
    }


def _image(row: Row) -> str | None:
    return row.planned.values.get("docker_image")


def _cells(number: int, row: Row, host: Host) -> tuple[str, ...]:
    needs, portion = row.wanted.needs, portion_on(row.wanted.needs, host)
    return (
        str(number),
        row.name,
        ", ".join(output.name for output in row.wanted.makes),
        str(portion.cores),
        size_text(portion.memory),
        size_text(needs.disk) if needs.disk else "-",
        "yes" if needs.gpu else "-",
        duration(row.wanted.expected) if row.wanted.expected is not None else "?",
        _image(row) or "-",
    )


def _notes(agenda: Agenda) -> list[str]:
    notes = [f"{counted(len(agenda.todo), 'row')} to build, {len(agenda.done)} up to date."]
    if agenda.seconds is not None:
        unknown = f", and {counted(agenda.unknown, 'row')} of unknown time" if agenda.unknown else ""
        parallelism = f"{agenda.jobs} in parallel" if agenda.jobs > 1 else "one at a time"
        notes.append(f"About {duration(agenda.seconds)} by the times of earlier builds, {parallelism}{unknown}.")
    elif agenda.todo:
        notes.append("The duration is unknown: none of it has been built here before.")
    return [*notes, *in_words(agenda.refused)]
