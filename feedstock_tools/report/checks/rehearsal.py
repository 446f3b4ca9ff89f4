"""A rehearsal as text: solved and unsolved environments, each reason once, and the builds that users would get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from feedstock_tools.check.choices import Pick
from feedstock_tools.check.findings import Verdict, checks_line
from feedstock_tools.check.rehearsal import FOLLOWS, Environment, Rehearsal
from feedstock_tools.report.checks.differences import few_jobs
from feedstock_tools.report.html_pages import html_page, shortened
from feedstock_tools.wording import counted, table

What = Literal["does not solve", "mistake", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """The same problem of several environments, or of what several machines get.

    Attributes:
        who: `kind of output` of environments, or the names of packages.
        machines: of a mistake: what users have.
        configurations: of environments: theirs.
        text: the reason, in lines.
    """

    what: What
    platform: str
    who: tuple[str, ...]
    machines: tuple[str, ...]
    configurations: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class PickRun:
    """A build that users get with neighbouring drivers; `machine` names them."""

    first: Pick
    machine: str


def problems(rehearsal: Rehearsal) -> tuple[Problem, ...]:
    """What does not solve, and choices that time stamps make; then the mistakes of what users get."""
    failed = [environment for environment in rehearsal.environments if environment.state == "failed"]
    return (*_reasons(failed), *_left_to_time(rehearsal.environments), *_mistakes(rehearsal.picks))


def _reasons(environments: Iterable[Environment]) -> Iterator[Problem]:
    by_reason: dict[tuple[str, str], list[Environment]] = {}
    for environment in environments:
        if environment.reason != FOLLOWS:
            by_reason.setdefault((environment.platform, environment.reason or ""), []).append(environment)
    for (platform, reason), ones in by_reason.items():
        yield _of_environments("does not solve", platform, reason, ones)


def _left_to_time(environments: Iterable[Environment]) -> Iterator[Problem]:
    """Choices between builds of other feedstocks that nothing but time stamps makes."""
    by_choice: dict[tuple[str, str], list[Environment]] = {}
    for environment in environments:
        for choice in (environment.by_time or "").splitlines():
            by_choice.setdefault((environment.platform, choice), []).append(environment)
    consequence = "whichever was built last, since they differ in nothing else"
    for (platform, choice), ones in by_choice.items():
        yield _of_environments("note", platform, f"{choice},\n{consequence}", ones)


def _of_environments(what: What, platform: str, text: str, environments: Sequence[Environment]) -> Problem:
    who = dict.fromkeys(f"{environment.kind} of {environment.output}" for environment in environments)
    configurations = dict.fromkeys(environment.configuration for environment in environments)
    return Problem(what, platform, tuple(who), (), tuple(configurations), text)


def _mistakes(picks: Iterable[Pick]) -> Iterator[Problem]:
    """Each mistake once for a platform, with an example."""
    groups: dict[tuple[str, str], list[Pick]] = {}
    for pick in picks:
        if pick.mistake:
            groups.setdefault((pick.platform, pick.mistake), []).append(pick)
    for (platform, mistake), group in groups.items():
        first, lines = group[0], [mistake]
        if first.by_time:
            lines.append(f"{first.name} with {_machine([first])} is {' or '.join([str(first.build), *first.by_time])},")
            lines.append("whichever was built last. Let build numbers grow with the CUDA version.")
        names = tuple(dict.fromkeys(pick.name for pick in group))
        machines = tuple(dict.fromkeys(_machine([pick]) for pick in group))
        yield Problem("mistake", platform, names, machines, (), "\n".join(lines))


def lacks(environments: Iterable[Environment]) -> dict[str, tuple[str, ...]]:
    """Platform → the packages that the stand-in channel lacks, which leaves the result unknown."""
    by_platform: dict[str, set[str]] = {}
    for environment in environments:
        if environment.state == "unknown" and environment.reason != FOLLOWS:
            lines = (environment.reason or "").splitlines()
            names = (name for line in lines for name in line.rpartition("no channel has ")[2].split(", "))
            by_platform.setdefault(environment.platform, set()).update(names)
    return {platform: tuple(sorted(names)) for platform, names in by_platform.items()}


def pick_runs(picks: Iterable[Pick]) -> list[PickRun]:
    """The builds that users get; neighbours that differ only in the driver are one."""
    runs: list[list[Pick]] = []
    for pick in picks:
        last = runs[-1][-1] if runs else None
        if last is not None and last.driver is not None and _same(last) == _same(pick):
            runs[-1].append(pick)
        else:
            runs.append([pick])
    return [PickRun(run[0], _machine(run)) for run in runs]


def _same(pick: Pick) -> tuple[object, ...]:
    return pick.platform, pick.name, pick.build, pick.by_time, pick.mistake


def _machine(group: Sequence[Pick]) -> str:
    first, last = group[0].driver, group[-1].driver
    if first is None:
        return "no GPU"
    return f"CUDA {first}" if first == last else f"CUDA {first} to {last}"


def origin(rehearsal: Rehearsal) -> str:
    """Where environments were solved, as a sentence."""
    if rehearsal.why_incomplete is not None:
        return f"Rehearsed on the stand-in channel: {rehearsal.why_incomplete}."
    return f"Rehearsed in {', '.join(rehearsal.channels)}."


def verdict(rehearsal: Rehearsal) -> str:
    """How many environments solve, and how many choices for users are wrong, as a sentence."""
    states = [environment.state for environment in rehearsal.environments]
    unsolved = states.count("failed") + states.count("waiting")
    mistakes = sum(1 for pick in rehearsal.picks if pick.mistake)
    questions = counted(rehearsal.solved, "different question")
    parts = [f"{counted(len(states), 'environment')} ({questions} to the solver)"]
    unknown = states.count("unknown")
    solved = f"{states.count('solved')} {'solves' if states.count('solved') == 1 else 'solve'}"
    parts.append(
        f"{unsolved} {'does' if unsolved == 1 else 'do'} not solve" if unsolved else solved if unknown else "all solve"
    )
    parts += [f"{unknown} unknown"] if unknown else []
    parts += [f"{counted(mistakes, 'choice')} for users {'is' if mistakes == 1 else 'are'} wrong"] if mistakes else []
    return ", ".join(parts) + "."


#: The kinds of environments, in order.
KINDS = ("build", "host", "run", "test")
_MOST_NAMES = 3


def rehearsal_text(rehearsal: Rehearsal, width: int | None = None) -> str:
    """The whole report, without a trailing line break.

    Args:
        width: the characters of a line of its tables, as for `table`.
    """
    found = problems(rehearsal)
    parts = [f"{checks_line(rehearsal.checks)}\n{origin(rehearsal)}", _environments(rehearsal.environments, width)]
    parts += [_problem(problem) for problem in found if problem.what == "does not solve"]
    parts += [
        f"unknown for {platform}, since the stand-in channel lacks\n  {_some(names, 10)}\n"
        "  (of these, a build fetches wheels that PyPI has: `feedstock-tools plan` names what it cannot have)"
        for platform, names in lacks(rehearsal.environments).items()
    ]
    parts += [_problem(problem) for problem in found if problem.what == "note"]
    if rehearsal.picks:
        parts.append(_users(pick_runs(rehearsal.picks), width))
    parts += [_problem(problem) for problem in found if problem.what == "mistake"]
    parts.append(verdict(rehearsal))
    return "\n\n".join(parts)


def _environments(environments: Sequence[Environment], width: int | None) -> str:
    """How many environments of each kind solve: a line for each configuration, or for many that are alike."""
    owned: dict[str, list[Environment]] = {}
    for environment in environments:
        owned.setdefault(environment.configuration, []).append(environment)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, own in owned.items():
        cells = (solved_of([environment for environment in own if environment.kind == kind]) for kind in KINDS)
        alike.setdefault((own[0].platform, *cells), []).append(name)
    rows = [
        (title, *cells)
        for (_, *cells), names in alike.items()
        for title in (names if len(names) <= _MOST_NAMES else [few_jobs(names)])
    ]
    return table(("configuration", *KINDS), rows, width=width) if rows else "There are no environments to solve."


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


def _users(runs: Sequence[PickRun], width: int | None) -> str:
    """The installed build by name and driver."""
    rows = [
        (run.first.platform, run.first.name, run.machine, run.first.build or "nothing", _remark(run)) for run in runs
    ]
    head = ("platform", "name", "driver", "build", "")
    return f"What users would get of these configurations:\n{table(head, rows, width=width)}"


def _remark(run: PickRun) -> str:
    return "MISTAKE" if run.first.mistake else ""


#: How much the page shows; the JSON has everything.
_MOST_PROBLEMS, _MOST_PICKS, _MOST_ENVIRONMENTS, _MOST_NAMES_OF_PAGE = 200, 2_000, 6_000, 100
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
        is_wrong=rehearsal.verdict is Verdict.WRONG,
        verdict=verdict(rehearsal),
        origin=f"{checks_line(rehearsal.checks)} {origin(rehearsal)}",
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
        most=_MOST_NAMES_OF_PAGE,
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
