"""The state of a fleet: a table and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from feedstock_tools.wording import counted, duration, shown, size_text, table

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import Job

    Hosts = Mapping[str, Mapping[str, Any]]

#: The parts of a host's report that JSON has.
_REPORTED = ("builder", "cores", "memory", "jobs", "gpus", "labels", "version", "unfit", "builds")


def status_text(hosts: Hosts, away: Mapping[str, str], runs: Mapping[str, int]) -> str:
    """A line for each host, one for each build on it, and one for each run.

    Args:
        hosts: those that are there, with their reports.
        away: the names of those that should be there and are not, each with the reason as far as known.
        runs: name → the number of rows that have not ended.
    """
    if not hosts and not away:
        return "No host has joined the scheduler."
    head = ("host", "state", "platform", "cores", "memory", "builds")
    rows = [*(_cells(name, report) for name, report in sorted(hosts.items())), *(_away(*each) for each in away.items())]
    lines = [
        *(line for name, report in sorted(hosts.items()) for line in _builds(name, report)),
        *(f"run {shown(run)}: {counted(count, 'row')} to build" for run, count in sorted(runs.items())),
    ]
    return "\n".join([table(head, rows), *([""] if lines else []), *lines])


def status_json(hosts: Hosts, away: Mapping[str, str], runs: Mapping[str, int]) -> dict[str, Any]:
    """The same for programs."""
    present = [
        {"name": name, "present": True, **{key: report.get(key) for key in _REPORTED}}
        for name, report in sorted(hosts.items())
    ]
    return {
        "hosts": [
            *present,
            *({"name": name, "present": False, "unfit": reason or None} for name, reason in away.items()),
        ],
        "runs": dict(runs),
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


def _cells(name: str, report: Mapping[str, Any]) -> tuple[str, ...]:
    cores, memory, builds = report.get("cores"), report.get("memory"), report.get("builds")
    return (
        shown(name),
        shown(f"set aside: {unfit}") if (unfit := report.get("unfit")) else "present",
        shown(str(report.get("builder", ""))),
        str(len(cores)) if isinstance(cores, list | tuple) else "",
        size_text(memory) if isinstance(memory, int) else "",
        counted(len(builds) if isinstance(builds, dict) else 0, "build"),
    )


def _away(name: str, reason: str) -> tuple[str, ...]:
    return name, shown(f"away: {reason}" if reason else "away"), "", "", "", ""


def _builds(name: str, report: Mapping[str, Any]) -> Iterator[str]:
    builds = report.get("builds")
    for each in builds.values() if isinstance(builds, dict) else ():
        yield shown(f"{name} builds {each.get('row')} for {duration(float(each.get('seconds', 0)))}")
