"""A branch of a feedstock as a reviewer looks at it: what changes for users, and what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from feedstock_tools.check.against_facts import check_renderings
from feedstock_tools.check.build_numbers import remarks_on_numbers
from feedstock_tools.check.comparison.differences import Differences, PackageChange, compare_renderings
from feedstock_tools.check.comparison.package_parts import NO_ENVIRONMENT
from feedstock_tools.check.findings import Finding
from feedstock_tools.check.linting.lint import lint_renderings
from feedstock_tools.check.linting.subject import Mistaken
from feedstock_tools.check.rehearsal.model import Environment, Pick, Rehearsal
from feedstock_tools.check.rehearsal.of_feedstock import RehearsalChannels, rehearse_configurations
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import InputError
from feedstock_tools.facts import load_cuda
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.rerendering import Rerender, rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import Release

#: Names of jobs in a message, which change with a rerender.
_JOBS = re.compile(r"\b(?:linux|osx|win)_[\w.-]+(?:, [\w.-]+_[\w.-]+)*(?: and \d+ more)?")

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Stale:
    """What a rerender would change.

    Attributes:
        files: the kind of each change with its file.
        lost: builds that it would lose.
        base_too: the base needs a rerender as well, and the branch did not cause this one.
        compared: the branch has the configurations of the base, so the comparison takes both states as a rerender
            would make them.
        why_not: the reason why the branch cannot be rerendered; empty if it can.
    """

    files: tuple[tuple[str, str], ...]
    lost: tuple[str, ...] = ()
    base_too: bool = False
    compared: bool = False
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer asks of a branch.

    Attributes:
        differences: what changes for jobs and packages.
        stale: what a rerender would change; None if it was not tried.
        lint: findings of `lint` that the base does not have.
        facts: findings of `cuda check` that the base does not have.
        known: how many findings of both kinds the base has, too.
        numbers: remarks on build numbers, one sentence each.
        rehearsal: the environments of the jobs that change; None if none does, or if it was not tried.
        failures: those of them that do not solve, and did in the base or were not there.
        mistaken: the builds that users would get by mistake, and would not in the base.
    """

    differences: Differences
    stale: Stale | None
    lint: tuple[Mistaken, ...]
    facts: tuple[Finding, ...]
    known: int
    numbers: tuple[str, ...] = ()
    rehearsal: Rehearsal | None = None
    failures: tuple[Environment, ...] = ()
    mistaken: tuple[Pick, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the branch brings nothing to mend: a rerender, a mistake, an environment that does not solve."""
        mistakes = "mistake" in {*(found.weight for found in self.lint), *(found.weight for found in self.facts)}
        stale = self.stale is not None and (self.stale.files or self.stale.why_not) and not self.stale.base_too
        return not (mistakes or stale or self.failures or self.mistaken)


def review_feedstock(
    before: Path,
    after: Path,
    *,
    pinning: Path | None = None,
    smithy: Release | None = None,
    rules: Rules | None = None,
    rehearsed_in: Callable[[Sequence[Configuration]], RehearsalChannels] | None = None,
) -> Review:
    """Review a state of a feedstock against an earlier one.

    Args:
        before: the folder of the earlier state.
        after: the folder of the state to review.
        pinning: the pinning's conda_build_config.yaml; None: the check for a missing rerender is skipped.
        smithy: the release of conda-smithy that writes the whole tree; None to compare `.ci_support` and job lists.
        rules: the versions of conda-smithy and conda-build to follow; default: the newest.
        rehearsed_in: the channels in which to solve the environments of some configurations; None to solve none.

    Raises:
        InputError: a recipe, a configuration or the pinning is invalid.
        WorkError: a channel cannot be read.

    >>> review = review_feedstock(Path("solver-feedstock"), Path("solver-feedstock"))
    >>> review.holds, review.differences.same
    (True, 24)
    """
    stale, base, branch = _states(before, after, pinning, smithy, rules)  # each is rendered once, for all questions
    differences = compare_renderings(base, branch)
    own, old = branch.configurations, base.configurations
    new_names = dict(differences.jobs_replaced)
    lint, known_lint = _new(
        lint_renderings(branch, pinning),
        lint_renderings(base, pinning),
        lambda found: (found.path, found.rule, _JOBS.sub("", found.message)),
    )
    known = load_cuda()
    facts, known_facts = _new(
        check_renderings(branch, own, pinning, known),
        check_renderings(base, old, pinning, known),
        lambda found: (new_names.get(found.configuration, found.configuration), found.key, found.message),
    )
    review = Review(
        differences=differences,
        stale=stale,
        lint=lint,
        facts=facts,
        known=known_lint + known_facts,
        numbers=remarks_on_numbers(base, branch, differences),
    )
    touched = affected(differences, own)
    if not touched or rehearsed_in is None:
        return review
    channels = rehearsed_in(touched)
    rehearsal = rehearse_configurations(after, touched, channels)
    names = {configuration.name for configuration in touched}
    earlier = [configuration for configuration in old if configuration.name in names]
    then = None if rehearsal.holds or not earlier else rehearse_configurations(before, earlier, channels)
    failures, mistaken = _new_failures(rehearsal, then)
    return replace(review, rehearsal=rehearsal, failures=failures, mistaken=mistaken)


def affected(differences: Differences, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """The configurations that are new, or whose packages change in what environments depend on."""
    names = {
        *differences.jobs_added,
        *(name for _, name in differences.jobs_replaced),
        *(job for job, _ in differences.packages_added),
        *(job for change in differences.packages_changed if _changes_environments(change) for job in change.jobs),
    }
    return tuple(configuration for configuration in configurations if configuration.name in names)


def _changes_environments(change: PackageChange) -> bool:
    return any(lines.part not in NO_ENVIRONMENT for lines in change.changes)


def _new_failures(now: Rehearsal, before: Rehearsal | None) -> tuple[tuple[Environment, ...], tuple[Pick, ...]]:
    """The failed environments and mistaken picks that an earlier rehearsal did not have."""
    failed = [environment for environment in now.environments if environment.state == "failed"]
    mistaken = [pick for pick in now.picks if pick.mistake]
    if before is None:
        return tuple(failed), tuple(mistaken)
    failed_before = {_sense(environment) for environment in before.environments if environment.state == "failed"}
    picks = {(pick.platform, pick.driver, pick.name, pick.mistake) for pick in before.picks}
    return (
        tuple(environment for environment in failed if _sense(environment) not in failed_before),
        tuple(pick for pick in mistaken if (pick.platform, pick.driver, pick.name, pick.mistake) not in picks),
    )


def _sense(environment: Environment) -> tuple[str, str, str, str | None]:
    return environment.configuration, environment.output, environment.kind, environment.reason


def _new(
    found: Iterable[Found], before: Iterable[Found], sense: Callable[[Found], Hashable]
) -> tuple[tuple[Found, ...], int]:
    """The findings that were not there before, whatever their lines, and how many were."""
    left = Counter(map(sense, before))
    new, repeated = [], 0
    for each in found:
        if left[sense(each)]:
            left[sense(each)] -= 1
            repeated += 1
        else:
            new.append(each)
    return tuple(new), repeated


def _states(
    before: Path, after: Path, pinning: Path | None, smithy: Release | None, rules: Rules | None
) -> tuple[Stale | None, Renderings, Renderings]:
    """What a rerender would change, and both states to compare: as they are, or as a rerender would make them."""
    as_they_are = Renderings(before, rules), Renderings(after, rules)
    if pinning is None:
        return None, *as_they_are
    make = partial(rerender, pinning=pinning, smithy=smithy, rules=rules or Rules.newest())
    try:
        result = make(after)
        files = tuple(result.changes().listed())
    except InputError as error:
        return Stale((), base_too=_fails(make, before), why_not=str(error)), *as_they_are
    lost = tuple(str(each) for each in result.lost_jobs())
    base, branch = as_they_are
    try:
        earlier = make(before) if files else None
    except InputError:  # which the branch mends
        return Stale(files, lost), base, branch
    base_too = earlier is not None and bool(earlier.changes())
    if earlier is None or branch.configurations != base.configurations:
        return Stale(files, lost, base_too), base, branch
    caused = result.configurations != earlier.configurations
    rendered = Renderings(before, rules, earlier.configurations), Renderings(after, rules, result.configurations)
    return Stale(files, lost, base_too and not caused, compared=True), *rendered


def _fails(make: Callable[[Path], Rerender], folder: Path) -> bool:
    try:
        make(folder)
    except InputError:
        return True
    return False
