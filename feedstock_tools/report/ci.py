"""The jobs of CI services in the form that each service reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from feedstock_tools.builds.ci import MACHINES, CiJob


def github_lines(jobs: Sequence[CiJob]) -> str:
    """The lines for `$GITHUB_OUTPUT`: `any`, and `include` for a matrix."""
    include = [
        {"index": f"{number:03}", "runner": MACHINES[job.platform][0], "configurations": " ".join(job.configurations)}
        for number, job in enumerate(jobs, 1)
    ]
    return f"any={'true' if jobs else 'false'}\ninclude={json.dumps(include)}"


def azure_lines(jobs: Sequence[CiJob]) -> str:
    """The logging commands that set a matrix for each job of the Azure pipeline; an empty one has no configurations."""
    lines = []
    for name in dict.fromkeys(name for _, name in MACHINES.values() if name):
        own = [job for job in jobs if MACHINES[job.platform][1] == name]
        legs = {
            f"job_{number:03}": {"CONFIGURATIONS": " ".join(job.configurations)} for number, job in enumerate(own, 1)
        }
        lines.append(f"##vso[task.setvariable variable={name};isOutput=true]{json.dumps(legs) if legs else ''}")
    return "\n".join(lines)
