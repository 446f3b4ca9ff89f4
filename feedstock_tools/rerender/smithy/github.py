"""The job list of a workflow of GitHub Actions: the `include` of its matrix, everything else stays unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from feedstock_tools.rerender.smithy.jobs import Job
from feedstock_tools.rerender.smithy.text import find_block, lines_of, newline_of, split_entries

_ENTRY = re.compile(r"^ {10}- (?:CONFIG: )?(?P<name>.*)$")


def github_entries(text: str) -> dict[str, str] | None:
    """The jobs that a workflow has: name to the text of the entry; None if it has no such list."""
    lines = lines_of(text)
    include = _include(lines)
    return None if include is None else split_entries(lines[include.start + 1 : include.stop], _ENTRY)


def replace_include(text: str, jobs: Sequence[Job]) -> str | None:
    """The workflow with other jobs; None if it has no list to change."""
    lines = lines_of(text)
    include = _include(lines)
    if include is None:
        return None
    new = include_text(jobs).replace("\n", newline_of(lines))
    return "".join([*lines[: include.start + 1], new, *lines[include.stop :]])


def include_text(jobs: Sequence[Job]) -> str:
    """The entries as conda-smithy's template writes them: in the given order, unquoted.

    >>> print(include_text([Job("win_64_", "win", {"CONFIG": "win_64_", "os": "windows"})]), end="")
              - CONFIG: win_64_
                os: windows
    """
    lines = []
    for job in jobs:
        mark = "- "
        for name, value in job.fields.items():
            lines.append(f"          {mark}{name}: {value}\n")
            mark = "  "
    return "".join(lines)


def _include(lines: Sequence[str]) -> range | None:
    everything = range(len(lines))
    build = find_block(lines, "  build:", everything[_after(lines, "jobs:") :])
    strategy = build and find_block(lines, "    strategy:", build[1:])
    matrix = strategy and find_block(lines, "      matrix:", strategy[1:])
    return matrix and find_block(lines, "        include:", matrix[1:])


def _after(lines: Sequence[str], key: str) -> int:
    return next((number + 1 for number, line in enumerate(lines) if line.rstrip() == key), len(lines))
