"""What differs after a change of a feedstock, or in another package, as an HTML page: the verdict, then details."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from feedstock_tools.channel.comparing import PackageComparison
from feedstock_tools.check.comparison.differences import Differences, Lines
from feedstock_tools.report.checks.differences import changed_values, verdict
from feedstock_tools.report.checks.packages import comparison_verdict, how_files_differ
from feedstock_tools.report.html_pages import html_page, shortened

#: How much the page shows; the JSON has everything.
_MOST_CHANGES, _MOST_LINES, _MOST_NAMES = 500, 400, 200


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
    packages = [
        *_by_name("removed", differences.packages_removed),
        *_by_name("added", differences.packages_added),
        *(
            Change("changed", change.name, change.jobs, ", ".join(part.part for part in change.changes), change.changes)
            for change in differences.packages_changed
        ),
    ]
    jobs = [
        *(Change("removed", name) for name in differences.jobs_removed),
        *(Change("added", name) for name in differences.jobs_added),
        *(Change("changed", f"{old} → {new}") for old, new in differences.jobs_replaced),
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
        verdict(differences),
        f"{after} against {before}",
        groups,
        differs=bool(differences),
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
        differs=not found.same_contents,
        choices=(),
        why_no_choices="",
    )


def _page(
    title: str,
    verdict_text: str,
    sides: str,
    groups: Mapping[str, Sequence[Change]],
    *,
    differs: bool,
    choices: Sequence[object],
    why_no_choices: str,
) -> str:
    shown = {name: [_bounded(change) for change in group[:_MOST_CHANGES]] for name, group in groups.items() if group}
    counts = {
        state: sum(change.state == state for group in shown.values() for change in group)
        for state in ("removed", "added", "changed")
    }
    return html_page(
        "differences",
        styles=("differences",),
        scripts=("filter", "folded"),
        title=title,
        verdict=verdict_text,
        sides=sides,
        differs=differs,
        choices=choices[:_MOST_CHANGES],
        why_no_choices=why_no_choices,
        groups=shown,
        left={name: max(0, len(group) - _MOST_CHANGES) for name, group in groups.items()},
        counts={state: count for state, count in counts.items() if count},
        most=_MOST_NAMES,
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
        Lines(part.part, _some(part.removed), _some(part.added)) for part in islice(change.parts, _MOST_LINES)
    )
    return replace(change, title=shortened(change.title), note=shortened(change.note), parts=parts)


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    left = len(lines) - _MOST_LINES
    more = (f"… {left} more lines: --json has all",) if left > 0 else ()
    return (*map(shortened, lines[:_MOST_LINES]), *more)


def _signed(sign: str, lines: Iterable[str]) -> tuple[str, ...]:
    """The lines of a unified difference that have a sign, without it."""
    return tuple(line[1:] for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
