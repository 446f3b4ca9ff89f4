"""What reviewers ask of build numbers: a new version begins with 0, and a package that changes gets the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from feedstock_tools.check.comparison.differences import Differences
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.versions import parse_version

#: Parts of a package that follow from others, or that change without a build.
_FOLLOWING = frozenset({"build string", "build number"})
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The versions of a package in all jobs, and its lowest and highest build number."""

    versions: frozenset[str]
    lowest: int
    highest: int


def remarks_on_numbers(base: Renderings, branch: Renderings, differences: Differences) -> tuple[str, ...]:
    """The remarks on a branch: packages whose new version does not begin with 0, packages that change with the version
    and build numbers that the base has, and build numbers of a version that go back or leave numbers out.

    A recipe that gives its GPU builds higher numbers begins with the lowest of them.
    """
    before, after = _numbers(base), _numbers(branch)
    new = [name for name, own in after.items() if name in before and _is_new(before[name], own)]
    # An output that keeps its version when the recipe gets a new one has nothing of the recipe's sources in it.
    following = _FOLLOWING | ({"source"} if new else set())
    changed = {
        change.name
        for change in differences.packages_changed
        if any(lines.part not in following for lines in change.changes)
    }
    started = [name for name in new if after[name].lowest]
    same = [name for name in sorted(changed) if name in before and name in after and before[name] == after[name]]
    return (*_sentences(started, same, after), *_steps(before, after))


def _is_new(before: _Numbers, after: _Numbers) -> bool:
    return max(map(parse_version, after.versions)) > max(map(parse_version, before.versions))


def _sentences(started: list[str], same: list[str], after: Mapping[str, _Numbers]) -> Iterator[str]:
    if started:
        lowest = after[started[0]].lowest
        yield f"a new version begins with build number 0, not {lowest}: {_listed(started)}"
    if same:
        yield f"changed with the same version and build number, so both builds stay side by side: {_listed(same)}"


def _steps(before: Mapping[str, _Numbers], after: Mapping[str, _Numbers]) -> Iterator[str]:
    """The remarks on numbers of a version that all go back, or all forward by more than one."""
    names: dict[tuple[int, int], list[str]] = {}
    for name, own in after.items():
        base = before.get(name, own)
        step = own.lowest - base.lowest
        if own.versions == base.versions and step == own.highest - base.highest and step not in (0, 1):
            names.setdefault((base.lowest, own.lowest), []).append(name)
    for (old, new), stepping in sorted(names.items()):
        if new < old:
            yield f"the build number goes back from {old} to {new}, so solvers keep the old build: {_listed(stepping)}"
        else:
            yield f"the build number goes from {old} to {new}, and the next is {old + 1}: {_listed(stepping)}"


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _numbers(renderings: Renderings) -> Mapping[str, _Numbers]:
    found: dict[str, list[tuple[str, int]]] = {}
    for configuration in renderings.configurations:
        for _, output in renderings.packages(configuration):
            if not output.skip:
                found.setdefault(output.name, []).append((output.version, output.build_number))
    return {
        name: _Numbers(frozenset(version for version, _ in each), min(n for _, n in each), max(n for _, n in each))
        for name, each in sorted(found.items())
    }
