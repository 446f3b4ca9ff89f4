"""A branch of a feedstock as a reviewer looks at it: what changes for users, and what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from feedstock_tools.check.against_facts import check_renderings
from feedstock_tools.check.choices import Pick
from feedstock_tools.check.differences import NO_ENVIRONMENT, Differences, compare_renderings
from feedstock_tools.check.findings import Check, Finding, Verdict, verdict_of
from feedstock_tools.check.linting.lint import lint_renderings
from feedstock_tools.check.linting.subject import LintFinding
from feedstock_tools.check.rehearsal import Environment, Rehearsal, RehearsalChannels, rehearse_configurations
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.rerendering import Rerender, rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import Release
from feedstock_tools.rerender.source import NoPinning
from feedstock_tools.versions import Version, parse_version
from feedstock_tools.wording import some_of

#: Names of jobs in a message, which change with a rerender.
_JOBS = re.compile(r"\b(?:linux|osx|win)_[\w.+-]+(?:, [\w.+-]+_[\w.+-]+)*(?: and \d+ more)?")
#: The version and build string in the name of a file, which every new version changes.
_BUILD = re.compile(r"-[^-\s]+-[^-\s]+_\d+\b")

#: The check of the files that only a release of conda-smithy can write.
_WHOLE_TREE = "whole tree"

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
        incomplete: the checks that could not be completed, each with the reason.
    """

    differences: Differences
    stale: Stale | None
    lint: tuple[LintFinding, ...]
    facts: tuple[Finding, ...]
    known: int
    numbers: tuple[str, ...] = ()
    rehearsal: Rehearsal | None = None
    failures: tuple[Environment, ...] = ()
    mistaken: tuple[Pick, ...] = ()
    incomplete: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[Check, ...]:
        """What the branch brings to mend: a rerender, a mistake, an environment that does not solve; and what is
        unknown."""
        stale = self.stale is not None and (self.stale.files or self.stale.why_not) and not self.stale.base_too
        wrong = {
            "rerender": bool(stale),
            **({_WHOLE_TREE: False} if _WHOLE_TREE in self.incomplete else {}),
            **{check.name: False for check in self.differences.checks},
            "lint": any(found.weight == "mistake" for found in self.lint),
            "cuda check": any(found.weight == "mistake" for found in self.facts),
            "rehearse": bool(self.failures or self.mistaken),
        }
        return tuple(Check.of(name, wrong=each, unknown=self.incomplete.get(name, "")) for name, each in wrong.items())

    @property
    def verdict(self) -> Verdict:
        """That of all checks together."""
        return verdict_of(self.checks)

    def without(self, name: str, reason: str) -> Review:
        """The review with a check that could not be completed; if there is a reason."""
        return replace(self, incomplete={**self.incomplete, name: reason}) if reason else self


def review_feedstock(
    before: Path,
    after: Path,
    *,
    pinning: Path | NoPinning | None = None,
    smithy: Release | Literal["none"] | None = None,
    rules: Rules | None = None,
    rehearsed_in: Callable[[Sequence[Configuration]], RehearsalChannels] | None = None,
) -> Review:
    """Review a state of a feedstock against an earlier one.

    Args:
        before: the folder of the earlier state.
        after: the folder of the state to review.
        pinning: the pinning's conda_build_config.yaml; "none" if the feedstock needs none; None if there is none:
            whether a rerender is missing is unknown.
        smithy: the release of conda-smithy that writes the whole tree; "none" to compare `.ci_support` and job lists;
            None if there is none: whether a rerender changes other files is unknown.
        rules: the versions of conda-smithy and conda-build to follow; default: the newest.
        rehearsed_in: the channels in which to solve the environments of some configurations; None to solve none.

    Raises:
        InputError: a recipe, a configuration or the pinning is invalid.

    >>> review = review_feedstock(Path("solver-feedstock"), Path("solver-feedstock"))
    >>> str(review.verdict), review.incomplete["rerender"], review.differences.same
    ('unknown', 'no pinning', 24)
    """
    stale, base, branch = _states(
        before, after, pinning, smithy if isinstance(smithy, Release) else None, rules
    )  # each is rendered once, for all questions
    differences = compare_renderings(base, branch)
    own, old = branch.configurations, base.configurations
    new_names = dict(differences.jobs_replaced)
    linted = lint_renderings(branch, pinning)
    lint, known_lint = _new(
        linted.findings,
        lint_renderings(base, pinning).findings,
        lambda found: (found.path, found.rule, _BUILD.sub("", _JOBS.sub("", found.message))),
    )
    known, given = load_cuda(), pinning if isinstance(pinning, Path) else None
    checked = check_renderings(branch, own, given, known)
    facts, known_facts = _new(
        checked.findings,
        check_renderings(base, old, given, known).findings,
        lambda found: (new_names.get(found.configuration, found.configuration), found.key, found.message),
    )
    incomplete = {
        "rerender": "no pinning" if stale is None else stale.why_not.partition("\n")[0],
        _WHOLE_TREE: "" if smithy is not None or stale is None else "no release of conda-smithy",
        **{check.name: check.reason for check in differences.checks},
        "lint": _reasons(linted.checks),
        "cuda check": _reasons(checked.checks),
    }
    review = Review(
        differences=differences,
        stale=stale,
        lint=lint,
        facts=facts,
        known=known_lint + known_facts,
        numbers=_remarks_on_numbers(base, branch, differences),
        incomplete={name: reason for name, reason in incomplete.items() if reason},
    )
    touched = _affected(differences, own)
    if not touched:
        return review
    if rehearsed_in is None:
        return review.without("rehearse", "not asked for")
    return _rehearsed(review, (before, old), (after, touched), rehearsed_in, rules)


_State = tuple[Path, Sequence[Configuration]]


def _rehearsed(
    review: Review,
    before: _State,
    after: _State,
    rehearsed_in: Callable[[Sequence[Configuration]], RehearsalChannels],
    rules: Rules | None,
) -> Review:
    """The review with the environments of jobs that change; each state is a folder and its configurations."""
    folder, touched = after
    new_names = dict(review.differences.jobs_replaced)
    names = {configuration.name for configuration in touched}
    earlier = [each for each in before[1] if new_names.get(each.name, each.name) in names]
    try:
        channels = rehearsed_in(touched)
        rehearsal = rehearse_configurations(folder, touched, channels, rules=rules)
        wrong = rehearsal.verdict is Verdict.WRONG and earlier
        then = rehearse_configurations(before[0], earlier, channels, rules=rules) if wrong else None
    except WorkError as error:
        return review.without("rehearse", error.mistakes[0].message)
    failures, mistaken = _new_failures(rehearsal, then, new_names)
    found = replace(review, rehearsal=rehearsal, failures=failures, mistaken=mistaken)
    return found.without("rehearse", _reasons(rehearsal.checks))


def _reasons(checks: Sequence[Check]) -> str:
    """Why checks have no answer, each reason once."""
    return "; ".join(dict.fromkeys(check.reason for check in checks if check.reason))


def _affected(differences: Differences, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """The configurations that are new, or whose packages change in what environments depend on."""
    names = {
        *differences.jobs_added,
        *(name for _, name in differences.jobs_replaced),
        *(job for job, _ in differences.packages_added),
        *(
            job
            for change in differences.packages_changed
            if any(lines.part not in NO_ENVIRONMENT for lines in change.changes)
            for job in change.jobs
        ),
    }
    return tuple(configuration for configuration in configurations if configuration.name in names)


def _new_failures(
    now: Rehearsal, before: Rehearsal | None, new_names: Mapping[str, str]
) -> tuple[tuple[Environment, ...], tuple[Pick, ...]]:
    """The failed environments and mistaken picks that an earlier rehearsal did not have.

    Args:
        new_names: old name → new name of jobs that were replaced.
    """
    failed = [environment for environment in now.environments if environment.state == "failed"]
    mistaken = [pick for pick in now.picks if pick.mistake]
    if before is None:
        return tuple(failed), tuple(mistaken)
    failed_before = {
        _sense(replace(each, configuration=new_names.get(each.configuration, each.configuration)))
        for each in before.environments
        if each.state == "failed"
    }
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
    before: Path, after: Path, pinning: Path | NoPinning | None, smithy: Release | None, rules: Rules | None
) -> tuple[Stale | None, Renderings, Renderings]:
    """What a rerender would change, and both states to compare: as they are, or as a rerender would make them."""
    as_they_are = Renderings(before, rules), Renderings(after, rules)
    if pinning is None:
        return None, *as_they_are
    given = pinning if isinstance(pinning, Path) else None
    make = partial(rerender, pinning=given, smithy=smithy, rules=rules or Rules.newest())
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


#: Parts of a package that follow from others, or that change without a build.
_FOLLOWING = frozenset({"build string", "build number"})
#: The first of some names of packages.
_some = partial(some_of, most=4)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The versions of a package in all jobs, and its lowest and highest build number."""

    versions: frozenset[str]
    lowest: int
    highest: int

    @property
    def newest(self) -> Version:
        return max(map(parse_version, self.versions))


def _remarks_on_numbers(base: Renderings, branch: Renderings, differences: Differences) -> tuple[str, ...]:
    """The remarks on a branch: packages whose new version does not begin with 0, packages that change with the version
    and build numbers that the base has, and build numbers of a version that go back or leave numbers out.

    A recipe that gives its GPU builds higher numbers, by hundreds, begins with the lowest of them in some output.
    """
    before, after = _numbers(base), _numbers(branch)
    new = [name for name, own in after.items() if name in before and own.newest > before[name].newest]
    # An output that keeps its version when the recipe gets a new one has nothing of the recipe's sources in it.
    following = _FOLLOWING | ({"source"} if new else set())
    changed = {
        change.name
        for change in differences.packages_changed
        if any(lines.part not in following for lines in change.changes)
    }
    begins = any(after[name].lowest == 0 for name in new)
    started = [name for name in new if after[name].lowest % 100 or (after[name].lowest and not begins)]
    same = [name for name in sorted(changed) if name in before and name in after and before[name] == after[name]]
    return (*_sentences(started, same, after), *_steps(before, after))


def _sentences(started: list[str], same: list[str], after: Mapping[str, _Numbers]) -> Iterator[str]:
    if started:
        lowest = after[started[0]].lowest
        yield f"a new version begins with build number 0, not {lowest}: {_some(started)}"
    if same:
        yield f"changed with the same version and build number, so both builds stay side by side: {_some(same)}"


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
            yield f"the build number goes back from {old} to {new}, so solvers keep the old build: {_some(stepping)}"
        else:
            yield f"the build number goes from {old} to {new}, and the next is {old + 1}: {_some(stepping)}"


def _numbers(renderings: Renderings) -> Mapping[str, _Numbers]:
    found: dict[str, list[tuple[str, int]]] = {}
    for configuration in renderings.configurations:
        for package in renderings.packages(configuration):
            found.setdefault(package.name, []).append((package.output.version, package.output.build_number))
    return {
        name: _Numbers(frozenset(version for version, _ in each), min(n for _, n in each), max(n for _, n in each))
        for name, each in sorted(found.items())
    }
