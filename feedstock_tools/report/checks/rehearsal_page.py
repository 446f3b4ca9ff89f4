"""A rehearsal as one HTML page: what is wrong, what users would get, and every environment, folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from feedstock_tools.check.rehearsal.model import FOLLOWS, Environment, Rehearsal
from feedstock_tools.report.checks.rehearsal import KINDS, solved_of
from feedstock_tools.report.checks.rehearsal_view import Problem, lacks, origin, pick_runs, problems, verdict
from feedstock_tools.report.html_pages import html_page, shortened

#: How much the page shows; the JSON has everything.
_MOST_PROBLEMS, _MOST_PICKS, _MOST_ENVIRONMENTS, _MOST_NAMES = 200, 2_000, 6_000, 100
_WRONG = ("does not solve", "mistake")
#: The states of environments, the most urgent first.
_STATES = ("failed", "waiting", "unknown", "solved")


@dataclass(frozen=True, slots=True)
class _Line:
    """Equal environments of one output in several rows."""

    kind: str
    output: str
    platform: str
    state: str
    packages: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class _Configuration:
    """The environments of a configuration: how many of each kind solve, and all of them."""

    name: str
    states: tuple[str, ...]
    platform: str
    solved: tuple[tuple[str, str], ...]
    lines: tuple[_Line, ...]


def rehearsal_page(rehearsal: Rehearsal, feedstock: str) -> str:
    """The page.

    Args:
        feedstock: its name, for the heading.
    """
    found = sorted(problems(rehearsal), key=lambda problem: problem.what not in _WRONG)
    runs = pick_runs(rehearsal.picks)
    configurations = _configurations(rehearsal.environments)
    return html_page(
        "rehearsal",
        scripts=("filter", "folded"),
        feedstock=feedstock,
        holds=rehearsal.holds,
        verdict=verdict(rehearsal),
        origin=origin(rehearsal),
        counts=_counts(found, rehearsal.environments),
        platforms=sorted({environment.platform for environment in rehearsal.environments}),
        problems=[(problem, shortened(problem.text)) for problem in found[:_MOST_PROBLEMS]],
        problems_left=len(found) - _MOST_PROBLEMS,
        wrong=_WRONG,
        lacks=lacks(rehearsal.environments),
        runs=runs[:_MOST_PICKS],
        runs_left=len(runs) - _MOST_PICKS,
        configurations=configurations,
        environments_left=len(rehearsal.environments)
        - sum(line.count for configuration in configurations for line in configuration.lines),
        most=_MOST_NAMES,
    )


def _counts(found: Sequence[Problem], environments: Sequence[Environment]) -> dict[str, int]:
    """The numbers behind the filter's states: of problems, then of configurations with environments in a state."""
    counts: Counter[str] = Counter(problem.what for problem in found)
    for state in _STATES:
        counts[state] = len({each.configuration for each in environments if each.state == state})
    names = ("mistake", "does not solve", "note", "waiting", "unknown", "solved")
    return {name: counts[name] for name in names if counts[name]}


def _configurations(environments: Sequence[Environment]) -> list[_Configuration]:
    by_name: dict[str, list[Environment]] = {}
    for environment in environments:
        by_name.setdefault(environment.configuration, []).append(environment)
    room, made = _MOST_ENVIRONMENTS, []
    for name, own in by_name.items():
        lines = tuple(islice(_lines(own), room))
        room -= len(lines)
        solved = tuple((kind, solved_of([each for each in own if each.kind == kind])) for kind in KINDS)
        present = {each.state for each in own}
        states = tuple("does not solve" if state == "failed" else state for state in _STATES if state in present)
        made.append(_Configuration(name, states, own[-1].platform, solved, lines))
    return made


def _lines(environments: Sequence[Environment]) -> list[_Line]:
    groups: dict[tuple[str, str, str, str, str], list[Environment]] = {}
    for each in environments:
        reason = "" if each.state == "solved" else (each.reason or "").partition("\n")[0]
        groups.setdefault((each.kind, each.output, each.platform, each.state, reason), []).append(each)
    return [
        _Line(kind, output, platform, state, _packages(ones), "" if reason == FOLLOWS else reason[:200], len(ones))
        for (kind, output, platform, state, reason), ones in groups.items()
    ]


def _packages(environments: Sequence[Environment]) -> str:
    numbers = [each.packages for each in environments]
    if not any(numbers):
        return ""
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)} to {max(numbers)}"
