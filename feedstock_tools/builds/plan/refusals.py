"""Configurations that cannot be built on this machine, and how that is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.platforms import Platform

__all__ = ["in_words", "refuse_unbuildable", "refused", "refused_on_stand_in"]

#: Gives the reason why a configuration cannot be built on this machine; None where it can.
WhyNot = Callable[[PlannedConfiguration], str | None]


def refused(chosen: Sequence[PlannedConfiguration], why_not: WhyNot) -> dict[str, str]:
    """Those of some configurations that cannot be built on this machine: name → reason."""
    return {each.name: reason for each in chosen if (reason := why_not(each))}


def refused_on_stand_in(
    chosen: Sequence[PlannedConfiguration],
    on_stand_in: Callable[[str], bool],
    lacking: Callable[[Platform], str | None],
) -> dict[str, str]:
    """Those of some configurations that the stand-in channel of this machine cannot build: name → reason.

    Args:
        on_stand_in: whether the configuration of a name is built on the stand-in channel.
        lacking: why there is no compiler for a platform; None where there is one. Asked only where one is needed.
    """
    from feedstock_tools.builds.stand_in.limits import compiled_languages, why_not_on_stand_in
    from feedstock_tools.facts.packages import read_packages

    rows = [(each, row) for each in chosen if on_stand_in(each.name) for row in each.rows]
    compiled = [(each, row) for each, row in rows if compiled_languages(row.values)]
    packages = frozenset(package.name for package in read_packages()) if compiled else frozenset[str]()
    why_lacking = cache(lacking)
    reasons: dict[str, str] = {}
    for each, row in compiled:
        platform = Platform.parse(each.platform)
        reason = why_not_on_stand_in(row.values, platform, packages, why_lacking(platform))
        if reason is not None:
            reasons.setdefault(each.name, reason)
    return reasons


def in_words(reasons: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each reason, with the configurations (name → reason) that it keeps from being built."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        who = names[0] if len(names) == 1 else f"{len(names)} configurations ({names[0]} … {names[-1]})"
        yield f"{who} cannot be built here: {reason}"


def refuse_unbuildable(chosen: Sequence[PlannedConfiguration], why_not: WhyNot) -> None:
    """Refuse a run of which a part cannot be built on this machine.

    Raises:
        InputError: some of it cannot be built; every reason, with the configurations that it is about.
    """
    reasons = refused(chosen, why_not)
    hint = "With --all, what can be built here is, and the others are left out." if len(reasons) < len(chosen) else None
    mistakes = [Mistake(each) for each in in_words(reasons)]
    if mistakes:
        raise InputError.of([*mistakes[:-1], Mistake(mistakes[-1].message, hint=hint)])
