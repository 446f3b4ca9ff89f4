"""A rehearsal for people: its problems, each once, and the builds of users with neighbouring drivers together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from feedstock_tools.check.rehearsal.model import FOLLOWS, Environment, Pick, Rehearsal
from feedstock_tools.wording import counted

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
            lines.append(f"{first.name} with {_machine([first])} is {first.build} or {first.by_time},")
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
    if rehearsal.stand_in is not None:
        return f"Rehearsed on the stand-in channel: {rehearsal.stand_in}."
    return f"Rehearsed in {', '.join(rehearsal.channels)}."


def verdict(rehearsal: Rehearsal) -> str:
    """How many environments solve, and how many choices for users are wrong, as a sentence."""
    states = [environment.state for environment in rehearsal.environments]
    unsolved = states.count("failed") + states.count("waiting")
    mistakes = sum(1 for pick in rehearsal.picks if pick.mistake)
    questions = counted(rehearsal.solved, "different question")
    parts = [f"{counted(len(states), 'environment')} ({questions} to the solver)"]
    parts.append(f"{unsolved} {'does' if unsolved == 1 else 'do'} not solve" if unsolved else "all known ones solve")
    parts += [f"{states.count('unknown')} unknown"] if "unknown" in states else []
    parts += [f"{counted(mistakes, 'choice')} for users {'is' if mistakes == 1 else 'are'} wrong"] if mistakes else []
    return ", ".join(parts) + "."
