"""Configurations that cannot be built on this machine, and the messages about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PlannedConfiguration

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.choice import Engines


def refused(chosen: Sequence[PlannedConfiguration], engines: Engines) -> dict[str, str]:
    """The configurations that cannot be built on this machine: name → reason."""
    return {configuration.name: reason for configuration in chosen if (reason := engines.why_not(configuration))}


def left_to_others(chosen: Sequence[PlannedConfiguration], engines: Engines) -> dict[str, str]:
    """The configurations that another machine must build: name → reason.

    One whose recipe cannot be rendered is not among them: that is a mistake to report, wherever it is built.

    Raises:
        InputError: this machine can build none of them.
    """
    reasons = {
        configuration.name: reason for configuration in chosen if (reason := engines.why_elsewhere(configuration))
    }
    if len(reasons) == len(chosen):
        refuse_unbuildable(chosen, engines)
    return reasons


def refuse_unbuildable(chosen: Sequence[PlannedConfiguration], engines: Engines) -> None:
    """Refuse a run if a part of it cannot be built on this machine.

    Raises:
        InputError: some of it cannot be built; every reason, with its configurations.
    """
    refuse(refused(chosen, engines), some=len(chosen))


def refuse(reasons: Mapping[str, str], *, some: int, where: str = "here") -> None:
    """Refuse to build configurations, if there is a reason (name → reason).

    Args:
        some: the number of all chosen configurations.
        where: on which machine or machines.

    Raises:
        InputError: there is a reason; every reason, with its configurations.
    """
    hint = "Use --all to build the others." if len(reasons) < some else None
    mistakes = [Mistake(sentence) for sentence in in_words(reasons, where)]
    if mistakes:
        raise InputError.of([*mistakes[:-1], Mistake(mistakes[-1].message, hint=hint)])


def in_words(reasons: Mapping[str, str], where: str = "here") -> Iterator[str]:
    """A sentence for each reason, with its configurations (name → reason).

    Args:
        where: on which machine or machines.
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        subject = names[0] if len(names) == 1 else f"{len(names)} configurations ({names[0]} … {names[-1]})"
        yield f"{subject} cannot be built {where}: {reason}"
