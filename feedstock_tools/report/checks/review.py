"""A review as one comment on a pull request, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.check.findings import checks_line, checks_values
from feedstock_tools.check.rehearsal import Rehearsal
from feedstock_tools.check.reviewing import Review, Stale
from feedstock_tools.feedstock.configurations import renamed
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.report.checks.differences import differences_json, differences_markdown, few_jobs
from feedstock_tools.report.checks.linting import grouped_findings, listed_findings
from feedstock_tools.report.checks.rehearsal import rehearsal_text
from feedstock_tools.wording import code, counted, fenced, markup

#: GitHub refuses a comment of more than 65,536 characters.
_LONGEST = 65_000
#: Lines of a folded part; the rest is counted.
_LINES = 200


_HEADLINES = {"right": "Nothing to mend.", "wrong": "**Something to mend.**", "unknown": "**Not all is known.**"}


def review_markdown(review: Review, base: str, used: Sequence[str] = ()) -> str:
    """The review as Markdown, at most as long as a comment on GitHub may be.

    Args:
        base: the state that it is compared with, as the user named it.
        used: what the checks compared with, each with its date.
    """
    checked = f"{_HEADLINES[review.verdict]} {markup(checks_line(review.checks))}"
    parts = [f"### feedstock-tools review against {code(base)}\n\n{checked}"]
    parts += [f"Used: {markup(', '.join(used))}."] if used else []
    parts += ["\n".join(f"- {line}" for line in _summary(review))]
    details = [*_details(review)]
    others = sum(part.count("\n") + 2 for part in [*parts, *details])
    differences = f"#### What changes\n\n{differences_markdown(review.differences, others)}"
    text = "\n\n".join(part.strip("\n") for part in [*parts, differences, *details]) + "\n"
    if len(text) <= _LONGEST:
        return text
    short = "\n\n".join(parts)
    return f"{short}\n\nThe details are longer than a comment may be: see {code(f'feedstock-tools diff {base}')}.\n"


def review_json(review: Review, base: str, used: Sequence[str] = ()) -> dict[str, Any]:
    """The review as JSON values, with the verdict, the checks and the comment."""
    return {
        **checks_values(review.checks),
        "markdown": review_markdown(review, base, used),
        "base": base,
        "used": list(used),
        "differences": differences_json(review.differences),
        "stale": asdict(review.stale) if review.stale else None,
        "lint": [asdict(found) for found in review.lint],
        "cuda_check": [asdict(found) for found in review.facts],
        "known_findings": review.known,
        "build_numbers": list(review.numbers),
        "rehearsal": review.rehearsal.to_json() if review.rehearsal else None,
    }


def _summary(review: Review) -> Iterator[str]:
    """One line for each question of a reviewer."""
    stale = review.stale
    if stale is not None:
        yield _rerendered(stale)
        for lost in stale.lost:
            yield f"after a rerender: {markup(lost)}"
    not_counted = f" ({counted(review.known, 'finding')} of the base not counted)" if review.known else ""
    yield f"`lint`: {_count(review.lint)}; `cuda check`: {_count(review.facts)}{not_counted}"
    yield from (f"build numbers: {markup(remark)}" for remark in review.numbers)
    rehearsal = review.rehearsal
    if rehearsal is not None:
        where = (
            "on the stand-in channel" if rehearsal.why_incomplete is not None else f"in {', '.join(rehearsal.channels)}"
        )
        yield f"`rehearse` {markup(where)}: {_environments(review, rehearsal)}"


def _rerendered(stale: Stale) -> str:
    """Whether a rerender is missing, and which configurations everything else is about."""
    if stale.why_not:
        reason = markup(stale.why_not.partition("\n")[0])
        return f"{'cannot be rerendered, nor can the base' if stale.base_too else '**cannot be rerendered**'}: {reason}"
    if not stale.files:
        return "rerendered"
    word = "not rerendered, nor is the base" if stale.base_too else "**not rerendered**"
    compared = "; what follows is about both as a rerender makes them" if stale.compared else ""
    return f"{word}: a rerender changes {counted(len(stale.files), 'file')}{compared}"


def _environments(review: Review, rehearsal: Rehearsal) -> str:
    states = Counter(environment.state for environment in rehearsal.environments)
    old = states["failed"] - len(review.failures)
    parts = [f"{states['solved']} of {counted(len(rehearsal.environments), 'environment')} solve"]
    parts += [f"**{len(review.failures)} do not**"] if review.failures else []
    parts += [f"{old} do not, nor in the base"] if old else []
    parts += [f"{states['waiting']} wait for these"] if states["waiting"] else []
    parts += [f"{states['unknown']} lack packages there"] if states["unknown"] else []
    parts += [f"**{counted(len(review.mistaken), 'user')} would get another build**"] if review.mistaken else []
    return ", ".join(parts)


def _count(findings: Sequence[Any]) -> str:
    mistakes = sum(found.weight == "mistake" for found in findings)
    remarks = len(findings) - mistakes
    if not findings:
        return "no new finding"
    words = [f"**{counted(mistakes, 'new mistake')}**"] if mistakes else []
    return " and ".join([*words, *([counted(remarks, "new remark")] if remarks else [])])


def _details(review: Review) -> Iterator[str]:
    titles = review.differences.short_names
    if review.stale and review.stale.files:
        yield _folded("What a rerender changes", [*_rerendered_files(review.stale)])
    if review.lint:
        yield _folded("lint", listed_findings(review.lint).splitlines())
    if review.facts:
        jobs = len({found.configuration for found in review.facts})
        yield _folded("cuda check", grouped_findings(renamed(review.facts, titles), jobs).splitlines())
    if review.rehearsal:
        yield _folded("rehearse", rehearsal_text(renamed(review.rehearsal, titles)).splitlines())


def _rerendered_files(stale: Stale) -> Iterator[str]:
    """The files of each kind; those of jobs in one line."""
    jobs: dict[str, list[str]] = {}
    for kind, name in stale.files:
        if PurePosixPath(name).parent.name == CI_SUPPORT:
            jobs.setdefault(kind, []).append(PurePosixPath(name).stem)
        else:
            yield f"{kind} {name}"
    for kind, names in jobs.items():
        yield f"{kind} {few_jobs(names)} in {CI_SUPPORT}"


def _folded(title: str, lines: Sequence[str]) -> str:
    """A part that is opened by a click."""
    kept = list(lines[:_LINES])
    if len(lines) > _LINES:
        kept.append(f"… and {len(lines) - _LINES} more lines")
    return f"<details><summary>{title}</summary>\n\n{fenced(kept)}\n</details>"
