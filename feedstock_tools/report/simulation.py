"""A simulated run for a terminal, as values for JSON, and as a page with a picture of its builds over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts
from feedstock_tools.builds.fleet.simulation.simulate import HostUse, Simulation
from feedstock_tools.builds.plan.refusals import in_words
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.matrix.timeline import Job, draw
from feedstock_tools.wording import counted, duration, table

_HEAD = ("hosts", "used", "rows", "busy", "rented", "lost", "taken away", "cost")
_RIGHT = frozenset(range(1, len(_HEAD)))


def simulation_text(simulation: Simulation, hosts: SimulatedHosts, refused: Mapping[str, str]) -> str:
    """The duration and the cost of a run, and a line for each kind of host.

    Args:
        refused: the configurations that cannot be planned on this machine, with the reasons.
    """
    uses: dict[str, list[HostUse]] = {}
    for use in simulation.uses:
        uses.setdefault(hosts.kinds[use.host.name], []).append(use)
    lines = [_line(kind, of_kind, simulation, hosts) for kind, of_kind in uses.items()]
    return "\n".join([table(_HEAD, lines, right=_RIGHT), *_notes(simulation, hosts), *in_words(refused)])


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


def _notes(simulation: Simulation, hosts: SimulatedHosts) -> Iterator[str]:
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
    simulation: Simulation, hosts: SimulatedHosts, refused: Mapping[str, str], seed: int
) -> Mapping[str, Any]:
    """The same; seconds since the begin of the run, prices in the currency of the hosts."""
    return {
        "seconds": simulation.seconds,
        "rented_seconds": simulation.rented,
        "cost": simulation.cost,
        "currency": hosts.currency,
        "seed": seed,
        "builds": [
            {
                "row": build.row,
                "configuration": build.configuration,
                "host": build.host,
                "begin": build.begin,
                "end": build.end,
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
