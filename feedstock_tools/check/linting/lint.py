"""All rules over a feedstock, and the mistakes that can be mended safely."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import BoundError, Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.check.findings import Check, Report, Weight
from feedstock_tools.check.linting import packages
from feedstock_tools.check.linting.conda_forge import FINDERS, SMITHY_RULES, Found
from feedstock_tools.check.linting.feedstock_files import why_no_shellcheck
from feedstock_tools.check.linting.local_files import missing_files
from feedstock_tools.check.linting.reading import Reading, read_recipe
from feedstock_tools.check.linting.refused import refused_values, undefined_names
from feedstock_tools.check.linting.selectors import dead_items, dead_selectors
from feedstock_tools.check.linting.subject import OWN_RULES, LintFinding, Need, Rule, Subject, read_subject
from feedstock_tools.check.linting.variant_files import (
    ignored_spec,
    invalid_spec,
    placeholders,
    stale_migrations,
    unused_keys,
)
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, TextEdit, WrittenFiles, read_files
from feedstock_tools.recipe.written.owners import requirement_lists
from feedstock_tools.rerender.source import NoPinning, find_pinning
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted

_CHECKS: tuple[Callable[[Subject], Iterator[LintFinding]], ...] = (
    packages.duplicates,
    packages.loose_metapackages,
    packages.licenses,
    packages.without_package,
    packages.not_rendered,
    packages.collisions,
    packages.ambiguous_builds,
    packages.unbuilt_pins,
    packages.run_exports,
    dead_selectors,
    unused_keys,
    stale_migrations,
    ignored_spec,
    invalid_spec,
    placeholders,
    missing_files,
    refused_values,
    undefined_names,
)


#: All rules by name: ours, and those of conda-forge's linter.
RULES: Mapping[str, Rule] = dict(
    sorted({**OWN_RULES, **{name: each.rule for name, each in SMITHY_RULES.items()}}.items())
)


def lint_feedstock(
    feedstock: Path, *, pinning: Path | NoPinning | None = None, bounds: Bounds | None = None
) -> Report[LintFinding]:
    """The findings in a feedstock's recipe, in the order of its lines, and the verdict of each rule.

    Args:
        feedstock: its folder; configurations are read from its `.ci_support`.
        pinning: a folder laid out as the conda-forge-pinning package, or its file: migrations that it lacks are over.
            "none" if the feedstock needs none; None if there is none: what compares with it is unknown.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the feedstock lacks a recipe, or a file cannot be read.

    >>> [found.rule for found in lint_feedstock(Path("solver-feedstock")).findings][-2:]
    ['about-item', 'license-file']
    """
    if bounds is not None:
        return run_bounded(partial(lint_feedstock, feedstock, pinning=pinning), bounds)
    return lint_renderings(Renderings(feedstock), pinning)


def lint_renderings(renderings: Renderings, pinning: Path | NoPinning | None = None) -> Report[LintFinding]:
    """As `lint_feedstock`, for an opened state."""
    stage("looking for mistakes in the recipe")
    against = find_pinning(pinning) if isinstance(pinning, Path) else None
    subject = read_subject(read_files(renderings.feedstock), renderings, against)
    found: set[LintFinding] = set()
    unwritten = unread = ""
    try:
        _ = subject.recipe.root
    except InputError as error:
        unwritten = f"the recipe {error.mistakes[0].message}"
        found.update(packages.not_rendered(subject) if subject.jobs else subject.refused(error, "not-rendered"))
    else:
        found.update(each for check in _CHECKS for each in check(subject))
        try:
            found.update(_smithy_findings(subject))
        except InputError as error:  # which builds may survive, with a variant or a selector
            path, message = error.mistakes[0].path, error.mistakes[0].message
            unread = f"conda-forge's linter cannot read {path.name if path else 'the recipe'}: {message}"
            if not subject.jobs and not isinstance(error, BoundError):
                found.update(subject.refused(error, "not-rendered"))
    findings = tuple(sorted(found))
    wrong = {found.rule for found in findings if found.weight == "mistake"}
    lacking = _lacking(subject, without_pinning=pinning is None)
    return Report(
        findings,
        tuple(
            Check.of(
                name,
                wrong=name in wrong,
                unknown=unwritten or (name in SMITHY_RULES and unread) or lacking.get(rule.needs, ""),
            )
            for name, rule in RULES.items()
            if name != "conda-smithy"
        ),
    )


def _lacking(subject: Subject, *, without_pinning: bool) -> Mapping[Need, str]:
    """What rules lack, with the reason."""
    failed = sum(job.error is not None for job in subject.jobs)
    jobs = f"{failed} of {counted(len(subject.jobs), 'job')} cannot be rendered" if failed else ""
    jobs = jobs if subject.jobs else "no jobs in .ci_support"
    pinning = jobs or ("no pinning" if without_pinning else "")
    return {"jobs": jobs, "pinning": pinning, "shellcheck": why_no_shellcheck(subject.files)}


def _found(reading: Reading, only: Collection[str] = ()) -> Iterator[tuple[str, Weight, Found]]:
    """What the rules of conda-forge's linter find, but for those that conda-forge.yml turns off."""
    off = {part.text for part in reading.settings("linter", "skip")}
    for name, rule in SMITHY_RULES.items():
        if only and name not in only:
            continue
        if rule.skip not in off - {""} and rule.format in {"", reading.recipe.path.name}:
            yield from ((name, found.weight or rule.weight, found) for found in FINDERS[name](reading))


def _smithy_findings(subject: Subject) -> Iterator[LintFinding]:
    reading = read_recipe(subject)
    for name, weight, found in _found(reading):
        at = found.at if isinstance(found.at, int) else reading.place(found.at)
        fixable = bool(found.edits)
        yield subject.finding(at, name, found.message, document=found.document, fixable=fixable, weight=weight)


def rewritten(files: WrittenFiles, *rules: str, pinning: Path | None = None) -> Iterator[TextEdit]:
    """What the rules of conda-forge's linter write anew in the recipe; of these rules only, if any are given."""
    against = find_pinning(pinning) if pinning is not None else None
    for _, _, found in _found(read_recipe(Subject(files, (), against)), rules):
        yield from found.edits


def mendable(recipe: Document) -> dict[Part, list[Part]]:
    """The items of lists that can go safely: requirements that are in a list twice, or that no selector admits."""
    gone: dict[Part, list[Part]] = {}
    for list_, item in packages.repeated(recipe):
        gone.setdefault(list_, []).append(item)
    for list_ in requirement_lists(recipe):
        removed = gone.get(list_, [])
        dead = [item for item in dead_items(recipe, list_) if item not in removed]
        if dead and len(dead) + len(removed) < len(list_.items):
            gone[list_] = [*removed, *dead]
    return gone
