"""The state of a fleet: a table and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from feedstock_tools.wording import counted, duration, shown, size_text, table

Hosts = Mapping[str, Mapping[str, Any]]

#: The parts of a host's report that JSON has.
_REPORTED = ("builder", "cores", "memory", "jobs", "gpus", "labels", "version", "unfit", "builds", "keeps")


def status_text(hosts: Hosts, away: Mapping[str, str], runs: Mapping[str, int], jobs: Hosts) -> str:
    """A line for each host, those for its builds and what it keeps, one for each run, and one for each kind of job.

    Args:
        hosts: those that are there, with their reports.
        away: the names of those that should be there and are not, each with the reason as far as known.
        runs: name → the number of rows that have not ended.
        jobs: kind of job → its jobs, and what is wrong.
    """
    if not hosts and not away and not jobs:
        return "No host has joined the scheduler."
    head = ("host", "state", "platform", "cores", "memory", "builds")
    rows = [*(_cells(name, report) for name, report in sorted(hosts.items())), *(_away(*each) for each in away.items())]
    lines = [
        *(line for name, report in sorted(hosts.items()) for line in _builds(name, report)),
        *(f"run {shown(run)}: {counted(count, 'row')} to build" for run, count in sorted(runs.items())),
        *(_jobs(kind, state) for kind, state in sorted(jobs.items())),
    ]
    return "\n".join([table(head, rows), *([""] if lines else []), *lines])


def status_json(hosts: Hosts, away: Mapping[str, str], runs: Mapping[str, int], jobs: Hosts) -> dict[str, Any]:
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
        "jobs": {kind: {"jobs": state.get("jobs"), "problem": state.get("problem")} for kind, state in jobs.items()},
    }


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
    if keeps := report.get("keeps"):
        yield f"{shown(name)} keeps {counted(len(keeps), 'shared build')} for rows to come"


def _jobs(kind: str, state: Mapping[str, Any]) -> str:
    """The jobs of a kind: those that are hosts, and those that wait or begin."""
    jobs: Mapping[str, bool] = state.get("jobs") or {}
    parts = [("connected", [job for job, is_host in jobs.items() if is_host])]
    parts.append(("waiting", [job for job, is_host in jobs.items() if not is_host]))
    words = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names) or "none"
    return shown(f"jobs {kind}: {words}" + (f"; {problem}" if (problem := state.get("problem")) else ""))
