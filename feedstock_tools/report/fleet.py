"""The state of a fleet: a table and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from feedstock_tools.wording import counted, duration, shown, size_text, table

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.carrying.link import HostState, Listing
    from feedstock_tools.builds.fleet.cluster.queue import Job

#: The parts of a host's report that JSON has.
_REPORTED = ("builder", "cores", "memory", "jobs", "gpus", "labels", "version")


def status_text(listing: Listing) -> str:
    """A line for each host, and one for each attempt on it."""
    if not listing.hosts:
        return "No host has connected to the hub."
    head = ("host", "state", "platform", "cores", "memory", "builds")
    rows = [_cells(host) for host in listing.hosts.values()]
    builds = [line for host in listing.hosts.values() for line in _builds(host)]
    return "\n".join([table(head, rows), *([""] if builds else []), *builds])


def status_json(listing: Listing) -> dict[str, Any]:
    """The same for programs."""
    return {
        "hub": {"seconds": round(listing.up, 1)},
        "hosts": [
            {
                "name": host.name,
                "present": host.is_present,
                "connected": host.connected,
                "silent_seconds": round(host.silent, 1),
                **{key: host.report.get(key) for key in _REPORTED},
                "lease_seconds": host.lease,
                "attempts": [
                    {"attempt": each.get("attempt"), "row": each.get("row"), "runs": bool(each.get("runs"))}
                    for each in host.attempts
                ],
            }
            for host in listing.hosts.values()
        ],
    }


def jobs_text(jobs: Sequence[Job]) -> str:
    """A line for each job of a fleet."""
    if not jobs:
        return "The fleet has no jobs."
    head = ("job", "host", "state", "node", "left", "reason")
    return table(head, [_job_cells(job) for job in jobs])


def jobs_json(jobs: Sequence[Job]) -> dict[str, Any]:
    """The same for programs."""
    return {"jobs": [{**asdict(job), "lives": job.lives} for job in jobs]}


def _job_cells(job: Job) -> tuple[str, ...]:
    left = duration(job.left) if job.left is not None and job.lives else ""
    return tuple(map(shown, (job.number, job.host, job.state.lower(), job.node, left, job.reason)))


def _cells(host: HostState) -> tuple[str, ...]:
    report: Mapping[str, Any] = host.report
    cores = report.get("cores")
    memory = report.get("memory")
    running = sum(bool(each.get("runs")) for each in host.attempts)
    kept = len(host.attempts) - running
    builds = counted(running, "build") + (f", {counted(kept, 'result')} to fetch" if kept else "")
    return (
        shown(host.name),
        "present" if host.is_present else f"away for {duration(host.silent)}",
        shown(str(report.get("builder", ""))),
        str(len(cores)) if isinstance(cores, list) else "",
        size_text(memory) if isinstance(memory, int) else "",
        builds,
    )


def _builds(host: HostState) -> Iterator[str]:
    for each in host.attempts:
        state = "builds" if each.get("runs") else "has built"
        yield shown(f"{host.name} {state} {each.get('row')}")
