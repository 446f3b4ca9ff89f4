"""A rehearsal as text: solved and unsolved environments, each reason once, and the builds that users would get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from feedstock_tools.check.rehearsal.model import Environment, Rehearsal
from feedstock_tools.report.checks.rehearsal_view import (
    PickRun,
    Problem,
    lacks,
    origin,
    pick_runs,
    problems,
    verdict,
)
from feedstock_tools.wording import table

#: The kinds of environments, in order.
KINDS = ("build", "host", "run", "test")
_MOST_NAMES = 3


def rehearsal_text(rehearsal: Rehearsal) -> str:
    """The whole report, without a trailing line break."""
    found = problems(rehearsal)
    parts = [origin(rehearsal), _environments(rehearsal.environments)]
    parts += [_problem(problem) for problem in found if problem.what == "does not solve"]
    parts += [
        f"unknown for {platform}, since the stand-in channel lacks\n  {_some(names, 10)}"
        for platform, names in lacks(rehearsal.environments).items()
    ]
    parts += [_problem(problem) for problem in found if problem.what == "note"]
    if rehearsal.picks:
        parts.append(_users(pick_runs(rehearsal.picks)))
    parts += [_problem(problem) for problem in found if problem.what == "mistake"]
    parts.append(verdict(rehearsal))
    return "\n\n".join(parts)


def _environments(environments: Sequence[Environment]) -> str:
    """A line for each configuration: how many environments of each kind solve."""
    names = dict.fromkeys(environment.configuration for environment in environments)
    rows = []
    for name in names:
        own = [environment for environment in environments if environment.configuration == name]
        rows.append(
            (name, *(solved_of([environment for environment in own if environment.kind == kind]) for kind in KINDS))
        )
    return table(("configuration", *KINDS), rows) if rows else "There are no environments to solve."


def solved_of(environments: Sequence[Environment]) -> str:
    """How many environments solve: `4 solve`, `3 of 4 solve, 1 not`; `-` without any."""
    if not environments:
        return "-"
    counts = {
        state: sum(environment.state == state for environment in environments)
        for state in ("solved", "failed", "waiting")
    }
    unknown = len(environments) - sum(counts.values())
    if counts["solved"] == len(environments):
        return f"{len(environments)} solve"
    parts = [f"{counts['solved']} of {len(environments)} solve"] if counts["solved"] else []
    parts += [f"{counts['failed']} not"] if counts["failed"] else []
    parts += [f"{counts['waiting']} waiting"] if counts["waiting"] else []
    parts += [f"{unknown} unknown"] if unknown else []
    return ", ".join(parts)


def _problem(problem: Problem) -> str:
    """A problem with whom it concerns, and the configurations of environments."""
    machines = f", with {_some(problem.machines)}" if problem.machines else ""
    lines = [f"{problem.what} ({problem.platform}): {_some(problem.who)}{machines}"]
    lines += [f"  {line}" for line in problem.text.splitlines()]
    return "\n".join([*lines, *([f"  in {_some(problem.configurations)}"] if problem.configurations else [])])


def _some(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")


def _users(runs: Sequence[PickRun]) -> str:
    """The installed build by name and driver."""
    rows = [
        (run.first.platform, run.first.name, run.machine, run.first.build or "nothing", _remark(run)) for run in runs
    ]
    return "What users would get of these configurations:\n" + table(("platform", "name", "driver", "build", ""), rows)


def _remark(run: PickRun) -> str:
    return "MISTAKE" if run.first.mistake else ""
