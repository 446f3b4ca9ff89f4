"""The plan of a run for a terminal, as Markdown and for JSON; and its simulation, which has a page with a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Host, local_host, portion_on
from feedstock_tools.builds.plan.refusals import in_words
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.check.findings import Check, checks_line, checks_values
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.timeline import Job, draw
from feedstock_tools.wording import counted, duration, markdown_table, markup, size_text, table, values_of

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import HostUse, SimulatedHosts, Simulation

_HEAD = ("", "row", "builds", "cores", "memory", "disk", "GPU", "about", "image")
_RIGHT = frozenset({0, 3, 4, 5, 7})
_SPARE = ("image", "disk", "GPU", "memory", "cores")


def plan_text(agenda: Agenda, width: int | None = None) -> str:
    """A table of the rows to build in order, the finished rows, refusals, and the expected duration.

    Args:
        width: the characters of a line of the table, as for `table`.
    """
    host = local_host(agenda.capacity, agenda.jobs)
    rows = [_cells(number, row, host) for number, row in enumerate(agenda.todo, 1)]
    parts = [table(_HEAD, rows, right=_RIGHT, width=width, spare=_SPARE, cut="builds")] if rows else []
    return "\n".join([*parts, *_notes(agenda)])


def plan_markdown(agenda: Agenda) -> str:
    """The same, to paste into an issue."""
    host = local_host(agenda.capacity, agenda.jobs)
    cells = (tuple(map(markup, _cells(number, row, host))) for number, row in enumerate(agenda.todo, 1))
    rows = markdown_table(_HEAD, cells, right=_RIGHT) if agenda.todo else []
    return "\n".join([*rows, "", *(f"- {markup(note)}" for note in _notes(agenda))]).lstrip()


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
        "short_name": row.title,
        "platform": row.platform,
        "builds": [output.stem for output in row.wanted.makes],
        "done": sorted(row.wanted.done),
        "cores": portion.cores,
        "memory": portion.memory,
        "disk": row.wanted.needs.disk,
        "gpu": row.wanted.needs.gpu,
        "image": row.wanted.needs.image,
        "seconds": row.wanted.expected,
        "from": {**portion.source, "seconds": row.wanted.seconds_source},
    }


def _cells(number: int, row: Row, host: Host) -> tuple[str, ...]:
    needs, portion = row.wanted.needs, portion_on(row.wanted.needs, host)
    return (
        str(number),
        row.title,
        ", ".join(output.name for output in row.wanted.makes),
        str(portion.cores),
        size_text(portion.memory),
        size_text(needs.disk) if needs.disk else "-",
        "yes" if needs.gpu else "-",
        duration(row.wanted.expected) if row.wanted.expected is not None else "?",
        needs.image or "-",
    )


def _notes(agenda: Agenda) -> list[str]:
    refused = f", {counted(len(agenda.refused), 'configuration')} refused" if agenda.refused else ""
    notes = [f"{counted(len(agenda.todo), 'row')} to build, {len(agenda.done)} up to date{refused}."]
    if agenda.seconds is not None:
        unknown = f", and {counted(agenda.unknown, 'row')} of unknown time" if agenda.unknown else ""
        parallelism = f"{agenda.jobs} in parallel" if agenda.jobs > 1 else "one at a time"
        about = f"{'At least' if unknown else 'About'} {duration(agenda.seconds)}"
        notes.append(f"{about} by the times of earlier builds, {parallelism}{unknown}.")
    elif agenda.todo:
        notes.append("The duration is unknown: none of it has been built here before.")
    return [*notes, *_refusals(agenda)]


def _refusals(agenda: Agenda) -> Iterator[str]:
    return in_words(agenda.refused, titles=agenda.titles)


_COLUMNS_OF_HOSTS = ("hosts", "used", "rows", "busy", "rented", "lost", "taken away", "cost")
_RIGHT_OF_HOSTS = frozenset(range(1, len(_COLUMNS_OF_HOSTS)))


def simulation_text(courses: Sequence[Simulation], hosts: SimulatedHosts, agenda: Agenda) -> str:
    """The duration and the cost of a run, and a line for each kind of host, of the first course; the range of all."""
    simulation, refused = courses[0], agenda.refused
    if not agenda.todo and not refused:
        return _notes(agenda)[0]
    uses: dict[str, list[HostUse]] = {}
    for use in simulation.uses:
        uses.setdefault(hosts.kinds[use.host.name], []).append(use)
    lines = [_line(kind, of_kind, simulation, hosts) for kind, of_kind in uses.items()]
    simulated = checks_line(simulation_checks(simulation, refused), "simulated row")
    if not agenda.todo:
        return "\n".join([simulated, *_notes(agenda)])
    shown = table(_COLUMNS_OF_HOSTS, lines, right=_RIGHT_OF_HOSTS)
    return "\n".join([simulated, shown, *_notes_of_run(simulation, hosts), *_range(courses, hosts), *_refusals(agenda)])


def _range(courses: Sequence[Simulation], hosts: SimulatedHosts) -> Iterator[str]:
    """What chance can do to the duration and the cost."""
    if len(courses) < 2:
        return
    times = sorted(each.seconds for each in courses)
    costs = sorted(each.cost for each in courses)
    price = f", {_money(costs[0], hosts)} to {_money(costs[-1], hosts)}" if costs[-1] else ""
    yield (
        f"In {len(courses)} courses of preemption: {duration(times[0])} to {duration(times[-1])}"
        f" (median {duration(times[len(times) // 2])}){price}."
    )


def simulation_checks(simulation: Simulation, refused: Mapping[str, str]) -> tuple[Check, ...]:
    """For each row whether its time is known, and for each refused configuration why not."""
    done = dict.fromkeys(build.row for build in simulation.builds)
    unknown = {**simulation.left_out, **{name: reason.partition("\n")[0] for name, reason in refused.items()}}
    return (
        *(Check.of(row, wrong=False) for row in done),
        *(Check.of(row, wrong=False, unknown=reason) for row, reason in unknown.items()),
    )


def _line(kind: str, uses: list[HostUse], simulation: Simulation, hosts: SimulatedHosts) -> tuple[str, ...]:
    builds = [build for build in simulation.builds if hosts.kinds[build.host] == kind]
    return (
        f"{len(uses)} x {kind}",
        str(sum(use.rented > 0 for use in uses)),
        str(sum(not build.cut_off for build in builds)),
        duration(sum(use.busy for use in uses)),
        duration(sum(use.rented for use in uses)),
        duration(sum(use.lost for use in uses)),
        str(sum(use.preemptions for use in uses)),
        _money(sum(use.cost for use in uses), hosts),
    )


def _notes_of_run(simulation: Simulation, hosts: SimulatedHosts) -> Iterator[str]:
    rows = counted(sum(not build.cut_off for build in simulation.builds), "row")
    cut_off = sum(build.cut_off for build in simulation.builds)
    again = f", {counted(cut_off, 'build')} cut off and begun again" if cut_off else ""
    price = f", {_money(simulation.cost, hosts)}" if simulation.cost else ""
    yield f"{rows} in {duration(simulation.seconds)}: {duration(simulation.rented)} of machine time{price}{again}."
    by_reason: dict[str, list[str]] = {}
    for row, reason in simulation.left_out.items():
        by_reason.setdefault(reason, []).append(row)
    for reason, left_out in by_reason.items():
        subject = left_out[0] if len(left_out) == 1 else f"{len(left_out)} rows ({left_out[0]} … {left_out[-1]})"
        yield f"Left out: {subject}: {reason}."


def _money(amount: float, hosts: SimulatedHosts) -> str:
    return f"{amount:.2f} {hosts.currency}".rstrip() if amount else "-"


def simulation_json(
    courses: Sequence[Simulation], hosts: SimulatedHosts, refused: Mapping[str, str], seed: int
) -> Mapping[str, Any]:
    """The same; seconds since the begin of the run, prices in the currency of the hosts."""
    simulation = courses[0]
    return {
        **checks_values(simulation_checks(simulation, refused)),
        "seconds": simulation.seconds,
        "rented_seconds": simulation.rented,
        "cost": simulation.cost,
        "currency": hosts.currency,
        "seed": seed,
        "courses": [
            {"seed": number, "seconds": each.seconds, "cost": each.cost} for number, each in enumerate(courses, seed)
        ],
        "builds": [
            {
                **values_of(build, "row", "configuration", "host", "begin", "end"),
                "result": "cut off" if build.cut_off else "done",
            }
            for build in simulation.builds
        ],
        "hosts": [
            {
                "host": use.host.name,
                "kind": hosts.kinds[use.host.name],
                "rented_seconds": use.rented,
                "busy_seconds": use.busy,
                "lost_seconds": use.lost,
                "taken_away": use.preemptions,
                "cost": use.cost,
            }
            for use in simulation.uses
        ],
        "left_out": dict(simulation.left_out),
        "refused": dict(refused),
    }


def simulation_page(simulation: Simulation, text: str, at: datetime) -> str:
    """A page with the picture of the run, as if it began at a time, and its text; it fetches nothing."""
    picture = draw(_jobs(simulation, at.astimezone(UTC).replace(microsecond=0)))
    return html_page("simulation", styles=("status",), picture=picture, text=text)


def _jobs(simulation: Simulation, at: datetime) -> list[Job]:
    return [
        Job(
            configuration=build.configuration,
            row=build.row,
            machine=build.host,
            result="interrupted" if build.cut_off else "done",
            begin=at + timedelta(seconds=build.begin),
            end=at + timedelta(seconds=build.end),
            packages=build.packages,
        )
        for build in simulation.builds
    ]
