"""The differences that a change of a feedstock makes, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from feedstock_tools.check.comparison.differences import Differences, JobChange, Lines
from feedstock_tools.wording import counted, shown

#: Jobs that are named before the rest is counted.
_NAMED = 3
#: New or removed packages that have a line each; more are grouped by job.
_MOST_LINES = 6


def differences_text(differences: Differences) -> str:
    """The differences as lines of text, the verdict last."""
    lines = []
    for sign, title, names in _jobs(differences):
        lines += [title, *(f"  {sign} {shown(name)}" for name in names)]
    lines += ["Replaced jobs:", *(f"  {line}" for line in _replaced(differences))] if differences.jobs_replaced else []
    lines += [f"  {line}" if line.startswith("  ") else line for line in _values(differences.jobs_changed)]
    for sign, title, pairs in _packages(differences):
        lines += [title, *(f"  {sign} {names} in {jobs}" for names, jobs in _by_job(pairs))]
    for change in differences.packages_changed:
        lines += [f"{shown(change.name)} in {_few(change.jobs)}:"]
        lines += [f"  {line}" for part in change.changes for line in _part(part)]
    lines += ["Changed files:", *(f"  {shown(name)}" for name in differences.files)] if differences.files else []
    choices = _choices(differences)
    lines += ["What solvers take:", *(f"  {line}" for line in choices)] if choices else []
    return "".join(f"{line}\n" for line in [*lines, verdict(differences)])


def differences_markdown(differences: Differences) -> str:
    """The differences for a pull request: the verdict first, details folded."""
    blocks = [f"**{verdict(differences)}**"]
    for sign, title, names in _jobs(differences):
        blocks.append("\n".join([f"{title[:-1]}:", "", *(f"- {sign} `{shown(name)}`" for name in names)]))
    if differences.jobs_replaced:
        blocks.append("\n".join(["Replaced jobs:", "", *(f"- {_html(line)}" for line in _replaced(differences))]))
    for sign, title, pairs in _packages(differences):
        listed = (f"- {sign} {names} in {jobs}" for names, jobs in _by_job(pairs, "`"))
        blocks.append("\n".join([title, "", *listed]))
    if differences.files:
        blocks.append("\n".join(["Changed files:", "", *(f"- `{shown(name)}`" for name in differences.files)]))
    choices = _choices(differences)
    if choices:
        blocks.append("\n".join(["What solvers take:", "", *(f"- {_html(line)}" for line in choices)]))
    for change in differences.packages_changed:
        parts = "\n".join(line for part in change.changes for line in _part(part))
        summary = f"<summary><code>{_html(change.name)}</code> in {_html(_few(change.jobs))}</summary>"
        blocks.append(f"<details>{summary}\n\n```diff\n{parts.replace('```', '` ` `')}\n```\n</details>")
    if differences.jobs_changed:
        values = "\n".join(_values(differences.jobs_changed)[1:])
        blocks.append(
            f"<details><summary>Values of jobs</summary>\n\n```\n{values.replace('```', '` ` `')}\n```\n</details>"
        )
    return "\n\n".join(blocks) + "\n"


def differences_json(differences: Differences) -> dict[str, Any]:
    """The differences as JSON values, with `packages_differ`."""
    return {"packages_differ": bool(differences), **asdict(differences)}


def verdict(differences: Differences) -> str:
    """How much is different, as a sentence."""
    if not differences:
        same = differences.same + differences.only_hashes
        hashes = f"; {counted(differences.only_hashes, 'package')} with another hash" if differences.only_hashes else ""
        return f"This changes no package: {counted(same, 'package')} compared{hashes}."
    counts = [
        (len(differences.jobs_added), "new job"),
        (len(differences.jobs_removed), "removed job"),
        (len(differences.jobs_replaced), "replaced job"),
        (len(differences.packages_added), "new package"),
        (len(differences.packages_removed), "removed package"),
        (sum(len(change.jobs) for change in differences.packages_changed), "changed package"),
        (len(differences.files), "changed file"),
        (differences.only_hashes, "package with another hash"),
        (differences.same, "unchanged package"),
    ]
    return ", ".join(_plural(number, noun) for number, noun in counts if number) + "."


def _plural(number: int, noun: str) -> str:
    if noun.startswith("package "):
        return f"{counted(number, 'package')} {noun.removeprefix('package ')}"
    return counted(number, noun)


def _jobs(differences: Differences) -> Iterator[tuple[str, str, Sequence[str]]]:
    if differences.jobs_removed:
        yield "-", "Removed jobs:", differences.jobs_removed
    if differences.jobs_added:
        yield "+", "New jobs:", differences.jobs_added


def _replaced(differences: Differences) -> list[str]:
    return [f"{shown(before)} -> {shown(after)}" for before, after in differences.jobs_replaced]


def _packages(differences: Differences) -> Iterator[tuple[str, str, Sequence[tuple[str, str]]]]:
    if differences.packages_removed:
        yield "-", "Removed packages:", differences.packages_removed
    if differences.packages_added:
        yield "+", "New packages:", differences.packages_added


def _by_job(pairs: Sequence[tuple[str, str]], mark: str = "") -> list[tuple[str, str]]:
    """Packages and their jobs, a pair a line; of many pairs the packages of each job, jobs with the same ones once."""
    if len(pairs) <= _MOST_LINES:
        return [(_few([name], mark), _few([job], mark)) for job, name in pairs]
    names: dict[str, list[str]] = {}
    for job, name in pairs:
        names.setdefault(job, []).append(name)
    jobs: dict[str, list[str]] = {}
    for job, packages in names.items():
        jobs.setdefault(", ".join(f"{mark}{shown(name)}{mark}" for name in packages), []).append(job)
    return [(packages, _few(alike, mark)) for packages, alike in jobs.items()]


def changed_values(changes: Sequence[JobChange]) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Key and value before and after → the jobs in which it changed so."""
    groups: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for change in changes:
        for value in change.values:
            groups[value] = (*groups.get(value, ()), change.name)
    return groups


def _values(changes: Sequence[JobChange]) -> list[str]:
    """The values of jobs that changed, the same change of several jobs once."""
    groups = changed_values(changes)
    lines = ["Changed values of jobs:"] if groups else []
    for (key, before, after), jobs in groups.items():
        lines.append(f"  {shown(key)}: {shown(before) or 'none'} -> {shown(after) or 'none'} in {_few(jobs)}")
    return lines


def _part(part: Lines) -> list[str]:
    return [
        f"{shown(part.part)}:"
        if part.removed or part.added
        else f"{shown(part.part)}: same lines, repeated differently",
        *(f"- {shown(line)}" for line in part.removed),
        *(f"+ {shown(line)}" for line in part.added),
    ]


def _choices(differences: Differences) -> list[str]:
    """What users get instead of what they got; or why that is unknown."""
    if differences.why_no_choices:
        return [f"unknown: {shown(differences.why_no_choices)}"]
    return [
        f"{shown(choice.name)} on {', '.join(choice.platforms)} with {choice.machine}: "
        f"{choice.after} instead of {choice.before}"
        for choice in differences.choices
    ]


def _few(jobs: Sequence[str], mark: str = "") -> str:
    named = ", ".join(f"{mark}{shown(job)}{mark}" for job in jobs[:_NAMED])
    return named if len(jobs) <= _NAMED else f"{named} and {len(jobs) - _NAMED} more"


def _html(text: str) -> str:
    return shown(text).replace("&", "&amp;").replace("<", "&lt;")
