"""A rehearsal as text: solved and unsolved environments, each reason once, and the builds that users would get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from feedstock_tools.check.rehearsal.model import FOLLOWS, Environment, Pick, Rehearsal
from feedstock_tools.wording import table

__all__ = ["rehearsal_text"]

_KINDS = ("build", "host", "run", "test")
_MOST_NAMES = 3


def rehearsal_text(rehearsal: Rehearsal) -> str:
    """The whole report, without a trailing line break."""
    parts = [_channels(rehearsal), _environments(rehearsal.environments)]
    parts += _reasons([environment for environment in rehearsal.environments if environment.state == "failed"])
    parts += _lacks([environment for environment in rehearsal.environments if environment.state == "unknown"])
    parts += _left_to_time([environment for environment in rehearsal.environments if environment.by_time])
    if rehearsal.picks:
        parts.append(_users(rehearsal.picks))
    parts += _mistakes(rehearsal.picks)
    parts.append(_verdict(rehearsal))
    return "\n\n".join(parts)


def _channels(rehearsal: Rehearsal) -> str:
    if rehearsal.stand_in is not None:
        return f"Rehearsed on the stand-in channel: {rehearsal.stand_in}."
    return f"Rehearsed in {', '.join(rehearsal.channels)}."


def _environments(environments: Sequence[Environment]) -> str:
    """A line for each configuration: how many environments of each kind solve."""
    names = dict.fromkeys(environment.configuration for environment in environments)
    rows = []
    for name in names:
        own = [environment for environment in environments if environment.configuration == name]
        rows.append(
            (name, *(_count([environment for environment in own if environment.kind == kind]) for kind in _KINDS))
        )
    return table(("configuration", *_KINDS), rows) if rows else "There are no environments to solve."


def _count(environments: Sequence[Environment]) -> str:
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


def _reasons(environments: Sequence[Environment]) -> list[str]:
    """Each reason once, with its environments."""
    by_reason: dict[tuple[str, str], list[Environment]] = {}
    for environment in environments:
        if environment.reason != FOLLOWS:
            by_reason.setdefault((environment.platform, environment.reason or ""), []).append(environment)
    return [_block("does not solve", *place, ones) for place, ones in by_reason.items()]


def _left_to_time(environments: Sequence[Environment]) -> list[str]:
    """Each choice between builds of other feedstocks made only by time stamps, with its environments."""
    by_choice: dict[tuple[str, str], list[Environment]] = {}
    for environment in environments:
        for choice in (environment.by_time or "").splitlines():
            by_choice.setdefault((environment.platform, choice), []).append(environment)
    consequence = "whichever was built last, since they differ in nothing else"
    return [
        _block("note", platform, f"{choice},\n{consequence}", ones) for (platform, choice), ones in by_choice.items()
    ]


def _block(what: str, platform: str, text: str, environments: Sequence[Environment]) -> str:
    """A message about environments, with their kinds, outputs and configurations."""
    where = dict.fromkeys(f"{environment.kind} of {environment.output}" for environment in environments)
    configurations = dict.fromkeys(environment.configuration for environment in environments)
    lines = [f"{what} ({platform}): {_some(where)}", *(f"  {line}" for line in text.splitlines())]
    return "\n".join([*lines, f"  in {_some(configurations)}"])


def _lacks(environments: Sequence[Environment]) -> list[str]:
    """For each platform the packages that the stand-in channel lacks, which leaves the result unknown."""
    by_platform: dict[str, dict[str, None]] = {}
    for environment in environments:
        if environment.reason != FOLLOWS:
            lines = (environment.reason or "").splitlines()
            names = (name for line in lines for name in line.rpartition("no channel has ")[2].split(", "))
            by_platform.setdefault(environment.platform, {}).update(dict.fromkeys(names))
    return [
        f"unknown for {platform}, since the stand-in channel lacks\n  {_some(sorted(names), 10)}"
        for platform, names in by_platform.items()
    ]


def _some(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")


def _users(picks: Sequence[Pick]) -> str:
    """The installed build by name and driver; drivers with the same build share a line."""
    rows = []
    for group in _runs(picks):
        first = group[0]
        rows.append((first.platform, first.name, _drivers(group), first.build or "nothing", _remark(first)))
    return "What users would get of these configurations:\n" + table(("platform", "name", "driver", "build", ""), rows)


def _runs(picks: Sequence[Pick]) -> list[list[Pick]]:
    """Merge neighbours that differ only in the driver."""
    runs: list[list[Pick]] = []
    for pick in picks:
        last = runs[-1][-1] if runs else None
        if last is not None and last.driver is not None and _same(last) == _same(pick):
            runs[-1].append(pick)
        else:
            runs.append([pick])
    return runs


def _same(pick: Pick) -> tuple[object, ...]:
    return pick.platform, pick.name, pick.build, pick.by_time, pick.mistake


def _drivers(group: Sequence[Pick]) -> str:
    first, last = group[0].driver, group[-1].driver
    if first is None:
        return "no GPU"
    return f"CUDA {first}" if first == last else f"CUDA {first} to {last}"


def _remark(pick: Pick) -> str:
    return "MISTAKE" if pick.mistake else ""


def _mistakes(picks: Sequence[Pick]) -> list[str]:
    """Each mistake once for a platform, with its names and machines, and an example."""
    groups: dict[tuple[str, str], list[Pick]] = {}
    for pick in picks:
        if pick.mistake:
            groups.setdefault((pick.platform, pick.mistake), []).append(pick)
    blocks = []
    for (platform, mistake), group in groups.items():
        first = group[0]
        who = _some(dict.fromkeys(pick.name for pick in group))
        machines = _some(dict.fromkeys(_drivers([pick]) for pick in group))
        lines = [f"mistake ({platform}): {who}, with {machines}", f"  {mistake}"]
        if first.by_time:
            lines.append(f"  {first.name} with {_drivers([first])} is {first.build} or {first.by_time},")
            lines.append("  whichever was built last. Let build numbers grow with the CUDA version.")
        blocks.append("\n".join(lines))
    return blocks


def _verdict(rehearsal: Rehearsal) -> str:
    states = [environment.state for environment in rehearsal.environments]
    unsolved = states.count("failed") + states.count("waiting")
    mistakes = sum(1 for pick in rehearsal.picks if pick.mistake)
    parts = [f"{len(states)} environments ({rehearsal.solved} different questions to the solver)"]
    parts.append(f"{unsolved} do not solve" if unsolved else "all known ones solve")
    parts += [f"{states.count('unknown')} unknown"] if "unknown" in states else []
    parts += [f"{mistakes} choices for users are wrong"] if mistakes else []
    return ", ".join(parts) + "."
