"""The differences that a change of a feedstock makes, as text, Markdown and JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from feedstock_tools.channel.packages.archive import FileDifference, PackageComparison
from feedstock_tools.check.differences import Differences, JobChange, Lines, PackageChange
from feedstock_tools.check.findings import checks_line, checks_values, verdict_of
from feedstock_tools.feedstock.configurations import renamed
from feedstock_tools.report.html_pages import html_page, shortened
from feedstock_tools.wording import code, counted, fenced, markup, named, size_text, values_of


def comparison_text(found: PackageComparison) -> str:
    """The verdict, and each file that differs with the lines of a text."""
    return "\n".join([*_lines(found), comparison_verdict(found), ""])


def comparison_markdown(found: PackageComparison) -> str:
    """The verdict first, then the files."""
    listed = [f"- {code(each.path)}: {markup(how_files_differ(each))}" for each in found.differences]
    return "\n".join([f"**{comparison_verdict(found)}**", *(["", *listed] if listed else []), ""])


def comparison_json(found: PackageComparison) -> Mapping[str, Any]:
    """The same; sizes in bytes."""
    return {
        **values_of(found, "same_bytes", "same_contents"),
        "sha256": found.digests,
        "files": found.files,
        "differences": [asdict(each) for each in found.differences],
    }


def _lines(found: PackageComparison) -> Iterator[str]:
    for each in found.differences:
        yield f"{named(each.path)}: {how_files_differ(each)}"
        if each.what == "text":
            yield from (f"  {named(line)}" for line in each.lines)


def how_files_differ(difference: FileDifference) -> str:
    """How the file of two packages differs, in a few words."""
    first, second = (size_text(size) for size in difference.sizes)
    return {
        "only in the first": f"only in the first package ({first})",
        "only in the second": f"only in the second package ({second})",
        "kind": "a file in one package, a link in the other",
        "mode": "executable in one package only",
        "link": f"leads to {' and to '.join(map(named, difference.lines))}",
        "text": "another text",
        "bytes": f"other bytes from offset {difference.first_byte} on ({first}, {second})",
    }[difference.what]


def comparison_verdict(found: PackageComparison) -> str:
    """Whether two packages are the same, as a sentence."""
    if found.same_bytes:
        return f"The same package, byte for byte ({found.digests[0]})."
    if found.same_contents:
        return f"The same contents in {counted(found.files, 'file')}, packed differently."
    return f"{len(found.differences)} of {counted(found.files, 'file')} differ."


#: Jobs that are named before the rest is counted.
_NAMED = 3
#: New or removed packages that have a line each; more are grouped by job.
_MOST_LINES = 6
#: Lines of a part of a package, of a list, and of the details in Markdown.
_MOST_OF_PART = 12
_MOST_OF_LIST = 6
_MOST_OF_PAGE = 80


def differences_text(differences: Differences) -> str:
    """What was compared, the differences as lines of text, then the verdict."""
    differences = renamed(differences, differences.short_names)
    lines = [checks_line(differences.checks)]
    for sign, title, names in _jobs(differences):
        lines += [title, *(f"  {sign} {named(name)}" for name in names)]
    lines += ["Replaced jobs:", *(f"  {line}" for line in _replaced(differences))] if differences.jobs_replaced else []
    lines += [f"  {line}" if line.startswith("  ") else line for line in _values(differences.jobs_changed)]
    for sign, title, pairs in _packages(differences):
        lines += [title, *(f"  {sign} {names} in {jobs}" for names, jobs in _by_job(pairs))]
    for change in each_once(differences.packages_changed):
        lines += [f"{named(change.name)} in {few_jobs(change.jobs)}:"]
        lines += [f"  {line}" for part in change.changes for line in _part(part)]
    lines += ["Changed files:", *(f"  {named(name)}" for name in differences.files)] if differences.files else []
    choices = _choices(differences)
    lines += ["What solvers take:", *(f"  {line}" for line in choices)] if choices else []
    return "".join(f"{line}\n" for line in [*lines, verdict(differences)])


def differences_markdown(differences: Differences, others: int = 0) -> str:
    """The differences for a pull request: the verdict first, details folded, under a hundred lines with `others`."""
    differences = renamed(differences, differences.short_names)
    lists = [(title, [code(name) for name in names]) for _, title, names in _jobs(differences)]
    lists.append(("Replaced jobs:", _replaced(differences, code)))
    for _, title, pairs in _packages(differences):
        lists.append((title, [f"{names} in {jobs}" for names, jobs in _by_job(pairs, code)]))
    lists.append(("Changed files:", [code(name) for name in differences.files]))
    lists.append(("What solvers take:", [markup(line) for line in _choices(differences)]))
    blocks = [f"**{verdict(differences)}** {markup(checks_line(differences.checks))}"]
    for title, items in lists:
        if items:
            blocks.append("\n".join([title, "", *(f"- {item}" for item in _first(items, _MOST_OF_LIST))]))
    values = _values(differences.jobs_changed)[1:]
    left = _MOST_OF_PAGE - others - sum(block.count("\n") + 2 for block in blocks) - min(len(values), _MOST_OF_LIST)
    if changed := each_once(differences.packages_changed):
        lines = [
            line
            for change in changed
            for line in (f"@@ {named(change.name)} in {few_jobs(change.jobs)} @@", *_short_parts(change.changes))
        ]
        summary = f"<summary>Changed packages: {counted(len(changed), 'change')}</summary>"
        blocks.append(f"<details>{summary}\n\n{fenced(_first(lines, max(left, _MOST_OF_PART)), 'diff')}\n</details>")
    if values:
        shown = fenced(_first(values, _MOST_OF_LIST))
        blocks.append(f"<details><summary>Values of jobs</summary>\n\n{shown}\n</details>")
    return "\n\n".join(blocks) + "\n"


def _first(lines: Sequence[str], most: int) -> Sequence[str]:
    """The first lines, and how many more there are."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"and {len(lines) - most + 1} more: --json has all"]


def differences_json(differences: Differences) -> dict[str, Any]:
    """The verdict, the checks and the differences as JSON values, with `packages_differ`."""
    return {**checks_values(differences.checks), "packages_differ": bool(differences), **asdict(differences)}


def verdict(differences: Differences) -> str:
    """How much is different, as a sentence."""
    if not differences and differences.why_no_packages:
        return "What this changes is unknown."
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


def _replaced(differences: Differences, name: Callable[[str], str] = named) -> list[str]:
    pairs = differences.jobs_replaced
    alike = [after for before, after in pairs if before == after]
    lines = [f"{name(before)} -> {name(after)}" for before, after in pairs if before != after]
    return [*lines, *([f"{few_jobs(alike, name)}: with another file in .ci_support"] if alike else [])]


def _packages(differences: Differences) -> Iterator[tuple[str, str, Sequence[tuple[str, str]]]]:
    if differences.packages_removed:
        yield "-", "Removed packages:", differences.packages_removed
    if differences.packages_added:
        yield "+", "New packages:", differences.packages_added


def _by_job(pairs: Sequence[tuple[str, str]], written: Callable[[str], str] = named) -> list[tuple[str, str]]:
    """Packages and their jobs, a pair a line; of many pairs the packages of each job, jobs with the same ones once."""
    if len(pairs) <= _MOST_LINES:
        return [(written(name), written(job)) for job, name in pairs]
    names: dict[str, list[str]] = {}
    for job, name in pairs:
        names.setdefault(job, []).append(name)
    jobs: dict[str, list[str]] = {}
    for job, packages in names.items():
        jobs.setdefault(", ".join(map(written, packages)), []).append(job)
    return [(packages, few_jobs(alike, written)) for packages, alike in jobs.items()]


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
        lines.append(f"  {named(key)}: {named(before) or 'none'} -> {named(after) or 'none'} in {few_jobs(jobs)}")
    return lines


def _part(part: Lines) -> list[str]:
    return [
        f"{named(part.part)}:"
        if part.removed or part.added
        else f"{named(part.part)}: same lines, repeated differently",
        *(f"- {named(line)}" for line in part.removed),
        *(f"+ {named(line)}" for line in part.added),
    ]


def _short_parts(parts: Iterable[Lines]) -> Iterator[str]:
    """The lines of parts, of each the first ones."""
    for part in parts:
        lines = _part(part)
        yield from lines[:_MOST_OF_PART]
        if len(lines) > _MOST_OF_PART:
            yield f"  … {counted(len(lines) - _MOST_OF_PART, 'more line')}"


def _choices(differences: Differences) -> list[str]:
    """What users get instead of what they got; or why that is unknown."""
    if differences.why_no_choices:
        return [f"unknown: {named(differences.why_no_choices)}"]
    return [
        f"{named(choice.name)} on {', '.join(choice.platforms)} with {choice.machine}: "
        f"{choice.after} instead of {choice.before}"
        for choice in differences.choices
    ]


def few_jobs(jobs: Sequence[str], written: Callable[[str], str] = named) -> str:
    """The names of jobs, or of many how many each platform has."""
    if len(jobs) <= _NAMED:
        return ", ".join(map(written, jobs))
    platforms = Counter("_".join(job.split("_")[:2]) for job in jobs)
    if len(platforms) == 1:
        return f"{len(jobs)} {written(*platforms)} jobs"
    return f"{len(jobs)} jobs ({', '.join(f'{number} {written(name)}' for name, number in platforms.items())})"


#: A line that a part of a package lost, and the one that it got instead; empty for none.
_Step = tuple[str, str, str]


def each_once(changes: Sequence[PackageChange]) -> list[PackageChange]:
    """The same changes with each line once: what most packages share first, then what only some of them have.

    A part that has one line before and after, such as the build number, is listed once with all its values. Packages of
    one name that differ by Python, `demo (2)`, go by the name if all of them have the change. What tests only name in
    another version is not repeated.
    """
    places: dict[_Step, dict[tuple[str, str], None]] = {}
    versions = {
        pair
        for change in changes
        for part in change.changes
        if part.part == "version"
        for pair in zip(part.removed, part.added, strict=False)
    }
    for change in changes:
        for step in (_without_version(step, versions) for part in change.changes for step in _steps(part)):
            places.setdefault(step, {}).update(dict.fromkeys((change.name, job) for job in change.jobs))
    alike: dict[frozenset[tuple[str, str]], list[_Step]] = {}
    names = dict.fromkeys(change.name for change in changes)
    for step, found in _with_all_values(places, names).items():
        alike.setdefault(frozenset(found), []).append(step)
    jobs = dict.fromkeys(job for change in changes for job in change.jobs)
    order = {job: at for at, job in enumerate(jobs)}
    return [
        PackageChange(
            _title(found, names), tuple(sorted({job for _, job in found}, key=order.__getitem__)), tuple(_parts(steps))
        )
        for found, steps in sorted(alike.items(), key=lambda each: -len(each[0]))
    ]


def _without_version(step: _Step, versions: Iterable[tuple[str, str]]) -> _Step:
    part, before, after = step
    if part == "tests" and any(old in before and before.replace(old, new) == after for old, new in versions):
        return part, "lines with the old version", "the same lines with the new version"
    return step


def _title(places: frozenset[tuple[str, str]], names: Iterable[str]) -> str:
    """The packages of some places, with the number of jobs of each where these differ."""
    by_jobs: dict[frozenset[str], list[str]] = {}
    for name in names:
        if jobs := frozenset(job for each, job in places if each == name):
            by_jobs.setdefault(jobs, []).append(name)
    titles = [(", ".join(_whole(own, names)), len(jobs)) for jobs, own in by_jobs.items()]
    if len(titles) == 1:
        return titles[0][0]
    return "; ".join(f"{title} ({counted(number, 'job')})" for title, number in titles)


def _whole(some: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """Names of packages, those of one package that are all there as its name.

    >>> _whole(["a", "a (2)", "b (2)"], ["a", "a (2)", "b", "b (2)"])
    ('a', 'b (2)')
    """
    missing = {_COPY.sub("", name) for name in names if name not in some}
    return tuple(dict.fromkeys(name if (base := _COPY.sub("", name)) in missing else base for name in some))


#: The number of a package among those of one name.
_COPY = re.compile(r" \(\d+\)$")


def _steps(part: Lines) -> Iterator[_Step]:
    """The lines of a part in pairs: a requirement of another version is one step."""
    left: dict[str, list[str]] = {}
    for line in part.added:
        left.setdefault(line.split(" ")[0], []).append(line)
    if len(part.removed) == len(part.added) == 1:
        yield part.part, part.removed[0], part.added[0]
        return
    for line in part.removed:
        successors = left.get(line.split(" ")[0])
        yield part.part, line, successors.pop(0) if successors else ""
    yield from ((part.part, "", line) for lines in left.values() for line in lines)
    if not part.removed and not part.added:
        yield part.part, "", ""


def _with_all_values(
    places: Mapping[_Step, dict[tuple[str, str], None]], names: Iterable[str]
) -> dict[_Step, dict[tuple[str, str], None]]:
    """The same, the steps of a part with one value as one step, and those of a pin on another of the packages."""
    found: dict[_Step, dict[tuple[str, str], None]] = {}
    kinds: dict[tuple[str, ...], list[_Step]] = {}
    for step in places:
        part, words = step[0], {line.split(" ")[0] for line in step[1:]}
        is_pin = len(words) == 1 and words <= set(names)
        kinds.setdefault((part,) if part in _OF_ONE_VALUE else (part, *words) if is_pin else step, []).append(step)
    for kind, steps in kinds.items():
        if len(steps) == 1:
            found[steps[0]] = places[steps[0]]
        else:
            befores, afters = (_values_of([step[at] for step in steps]) for at in (1, 2))
            found[kind[0], befores, afters] = {place: None for step in steps for place in places[step]}
    return found


#: The parts of a package that have one value each.
_OF_ONE_VALUE = frozenset({"version", "build number", "build string"})


def _values_of(values: Sequence[str]) -> str:
    more = f" and {len(values) - _MOST_LINES} more" if len(values) > _MOST_LINES else ""
    return f"{', '.join(value or 'none' for value in values[:_MOST_LINES])}{more}"


def _parts(steps: Iterable[_Step]) -> Iterator[Lines]:
    """The steps with the same changes as lines of their parts, in order."""
    parts: dict[str, list[_Step]] = {}
    for step in steps:
        parts.setdefault(step[0], []).append(step)
    for part, own in parts.items():
        yield Lines(part, tuple(before for _, before, _ in own if before), tuple(after for _, _, after in own if after))


#: The colours of a page without a difference.
_PAGE_STATES = {"right": "solved", "unknown": "unknown"}
#: How much the page shows; the JSON has everything.
_MOST_CHANGES, _MOST_LINES_OF_PAGE, _MOST_NAMES_OF_PAGE = 500, 400, 200


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the page.

    Attributes:
        state: `added`, `removed` or `changed`.
        title: what changed; `jobs`: where; `note`: what else is known, in a few words.
        parts: the lines that it lost and got.
    """

    state: str
    title: str
    jobs: tuple[str, ...] = ()
    note: str = ""
    parts: tuple[Lines, ...] = ()


def differences_page(differences: Differences, feedstock: str, before: str, after: str) -> str:
    """The page of two states of a feedstock.

    Args:
        feedstock: its name; `before` and `after`: the names of the states.
    """
    differences = renamed(differences, differences.short_names)
    packages = [
        *_by_name("removed", differences.packages_removed),
        *_by_name("added", differences.packages_added),
        *(
            Change("changed", change.name, change.jobs, ", ".join(part.part for part in change.changes), change.changes)
            for change in each_once(differences.packages_changed)
        ),
    ]
    jobs = [
        *(Change("removed", name) for name in differences.jobs_removed),
        *(Change("added", name) for name in differences.jobs_added),
        *(Change("changed", line) for line in _replaced(differences)),
    ]
    values = [
        Change("changed", key, jobs_of, f"{old or 'none'} → {new or 'none'}")
        for (key, old, new), jobs_of in changed_values(differences.jobs_changed).items()
    ]
    groups = {
        "Packages": packages,
        "Jobs": jobs,
        "Changed files": [Change("changed", name) for name in differences.files],
        "Values of jobs": values,
    }
    return _page(
        f"What a change of {feedstock} means",
        f"{verdict(differences)} {checks_line(differences.checks)}",
        f"{after} against {before}",
        groups,
        state="changed" if differences else _PAGE_STATES[verdict_of(differences.checks)],
        choices=differences.choices,
        why_no_choices=differences.why_no_choices,
    )


def comparison_page(found: PackageComparison, first: str, second: str) -> str:
    """The page of two packages; a file of one alone is `removed` if it is the first."""
    states = {"only in the first": "removed", "only in the second": "added"}
    files = [
        Change(
            states.get(each.what, "changed"),
            each.path,
            (),
            how_files_differ(each),
            (Lines("lines", _signed("-", each.lines), _signed("+", each.lines)),) if each.what == "text" else (),
        )
        for each in found.differences
    ]
    return _page(
        "Two packages compared",
        comparison_verdict(found),
        f"{second} against {first}",
        {"Files": files},
        state="solved" if found.same_contents else "changed",
        choices=(),
        why_no_choices="",
    )


def _page(
    title: str,
    verdict_text: str,
    sides: str,
    groups: Mapping[str, Sequence[Change]],
    *,
    state: str,
    choices: Sequence[object],
    why_no_choices: str,
) -> str:
    shown = {name: [_bounded(change) for change in group[:_MOST_CHANGES]] for name, group in groups.items() if group}
    counts = {
        kind: sum(change.state == kind for group in shown.values() for change in group)
        for kind in ("removed", "added", "changed")
    }
    return html_page(
        "differences",
        styles=("differences",),
        scripts=("filter", "folded"),
        title=title,
        verdict=verdict_text,
        sides=sides,
        state=state,
        choices=choices[:_MOST_CHANGES],
        why_no_choices=why_no_choices,
        groups=shown,
        left={name: max(0, len(group) - _MOST_CHANGES) for name, group in groups.items()},
        counts={kind: count for kind, count in counts.items() if count},
        most=_MOST_NAMES_OF_PAGE,
    )


def _by_name(state: str, pairs: Iterable[tuple[str, str]]) -> list[Change]:
    """Packages that some jobs no longer make, or make now, by their name."""
    jobs: dict[str, list[str]] = {}
    for job, name in pairs:
        jobs.setdefault(name, []).append(job)
    return [Change(state, name, tuple(of_name)) for name, of_name in jobs.items()]


def _bounded(change: Change) -> Change:
    """A change with as many lines as the page has room for."""
    parts = tuple(
        Lines(part.part, _some(part.removed), _some(part.added)) for part in islice(change.parts, _MOST_LINES_OF_PAGE)
    )
    return replace(change, title=shortened(change.title), note=shortened(change.note), parts=parts)


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    left = len(lines) - _MOST_LINES_OF_PAGE
    more = (f"… {left} more lines: --json has all",) if left > 0 else ()
    return (*map(shortened, lines[:_MOST_LINES_OF_PAGE]), *more)


def _signed(sign: str, lines: Iterable[str]) -> tuple[str, ...]:
    """The lines of a unified difference that have a sign, without it."""
    return tuple(line[1:] for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
