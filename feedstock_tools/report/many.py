"""What a change of the pinning does to many feedstocks: as text, Markdown, a page, and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from feedstock_tools.check.findings import Check, checks_line, checks_values
from feedstock_tools.many.impact import Impact, Touched
from feedstock_tools.many.index import Found
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.wording import code, counted, duration, markup, named, table

#: Keys and feedstocks that are named before the rest is counted, and packages of a feedstock.
_MOST, _MOST_PACKAGES = 40, 50
_HEAD = ("layer", "feedstock", "new jobs", "gone", "changed", "new packages")
_NUMBERS = frozenset({0, 2, 3, 4, 5})


@dataclass(frozen=True, slots=True)
class JobTimes:
    """The seconds of jobs: `given` by feedstock, `FEEDSTOCK/JOB` or a glob over them, and `otherwise` of all others."""

    given: Mapping[str, float]
    otherwise: float

    def cost(self, touched: Touched) -> float:
        """The seconds of all jobs of a feedstock that are rebuilt."""
        return sum(self._of(touched.name, job) for job in (*touched.added, *touched.changed))

    def _of(self, feedstock: str, job: str) -> float:
        names = (f"{feedstock}/{job}", feedstock)
        matching = (seconds for glob, seconds in self.given.items() if any(fnmatchcase(name, glob) for name in names))
        return next(matching, self.otherwise)


def impact_text(impact: Impact, times: JobTimes) -> str:
    """What was rendered, a table of the changed feedstocks in the order of rebuilding, and what is left alone."""
    rows = [tuple(map(str, row)) for row in _rows(impact, times)]
    lines = [_checked(impact), *([table(_HEAD, rows, right=_NUMBERS)] if rows else [])]
    lines += [f"Cycle: {cycle}." for cycle in _cycles(impact)]
    lines += [f"Fails: {named(each.name)}: {named(each.error)}" for each in impact.failed]
    lines += [
        f"Packages not known: {named(each.name)}: {named(each.unnamed)}" for each in impact.changed if each.unnamed
    ]
    lines += [f"Changes although the index rules it out: {named(name)}" for name in impact.missed]
    return "\n".join([*lines, *_summary(impact, times)])


def impact_markdown(impact: Impact, times: JobTimes) -> str:
    """The same for a pull request: the sums first, feedstocks folded, of each kind up to 40."""
    changed, cost, left = _summary(impact, times)
    blocks = [f"**{cost}** {markup(_checked(impact))}", f"{markup(changed)} {left}"]
    if rows := _rows(impact, times):
        lines = [" | ".join(_HEAD), " | ".join("---:" if at in _NUMBERS else "---" for at in range(len(_HEAD)))]
        lines += [" | ".join([str(row[0]), code(str(row[1])), *map(str, row[2:])]) for row in rows[:_MOST]]
        more = f"\n\nand {len(rows) - _MOST} more" if len(rows) > _MOST else ""
        blocks.append(_folded("Order of rebuilding", "\n".join(f"| {line} |" for line in lines) + more))
    if impact.cycles:
        blocks.append("\n".join(f"- Cycle: {markup(cycle)}" for cycle in _cycles(impact)))
    if unnamed := [each for each in impact.changed if each.unnamed]:
        lines = [f"- {code(each.name)}: {markup(each.unnamed)}" for each in unnamed[:_MOST]]
        blocks.append(_folded(f"Packages not known: {len(unnamed)}", "\n".join(lines)))
    if impact.failed:
        lines = [f"- {code(each.name)}: {markup(each.error)}" for each in impact.failed[:_MOST]]
        blocks.append(_folded(f"Fail to render: {len(impact.failed)}", "\n".join(lines)))
    return "\n\n".join(blocks) + "\n"


def impact_page(impact: Impact, times: JobTimes) -> str:
    """The same as a page: the layers, in each the feedstocks that cost most first."""
    layers: dict[int, list[tuple[Any, ...]]] = {}
    for row in _rows(impact, times):
        layers.setdefault(row[0], []).append(row[1:])
    packages = {each.name: each.packages for each in impact.changed}
    unnamed = {each.name: each.unnamed for each in impact.changed if each.unnamed}
    summary = (_checked(impact), *_summary(impact, times))
    cycles, most = list(_cycles(impact)), _MOST_PACKAGES
    return html_page(
        "impact",
        head=_HEAD[1:],
        layers=layers,
        packages=packages,
        unnamed=unnamed,
        most=most,
        cycles=cycles,
        failed=impact.failed,
        summary=summary,
    )


def impact_checks(impact: Impact) -> tuple[Check, ...]:
    """For each feedstock that was rendered whether what becomes of it, and of its packages, is known."""
    return (
        *(Check.of(each.name, wrong=each.name in impact.missed, unknown=each.unnamed) for each in impact.changed),
        *(Check.of(name, wrong=False) for name in impact.same),
        *(Check.of(each.name, wrong=False, unknown=each.error) for each in impact.failed),
    )


def reading_checks(feedstocks: Iterable[Found]) -> tuple[Check, ...]:
    """Whether each feedstock of an index was read: what nobody could read is not ruled out by a condition."""
    return tuple(Check.of(each.name, wrong=False, unknown=each.error.partition("\n")[0]) for each in feedstocks)


def _checked(impact: Impact) -> str:
    return checks_line(impact_checks(impact), "rendering")


def _rows(impact: Impact, times: JobTimes) -> list[tuple[int, str, int, int, int, int]]:
    """Layer, name, and the numbers of each changed feedstock, in the order of rebuilding."""
    layer_of = {name: number for number, layer in enumerate(impact.layers, 1) for name in layer}
    changed = sorted(impact.changed, key=lambda each: (layer_of[each.name], -times.cost(each), each.name))
    return [
        (layer_of[each.name], each.name, len(each.added), len(each.removed), len(each.changed), len(each.packages))
        for each in changed
    ]


def _cycles(impact: Impact) -> Iterator[str]:
    for cycle in impact.cycles:
        yield ", ".join(f"{pair} ({package})" for pair, package in cycle.items())


def _summary(impact: Impact, times: JobTimes) -> tuple[str, str, str]:
    """What changed, what it costs, and what is left alone."""
    keys = sorted(impact.change.keys)
    shown = ", ".join(keys[:_MOST]) + (f" and {len(keys) - _MOST} more" if len(keys) > _MOST else "")
    migrations = f"; {counted(len(impact.change.migrations), 'migration')}" if impact.change.migrations else ""
    jobs = sum(each.rebuilt for each in impact.changed)
    rebuilt, layers = counted(len(impact.changed), "feedstock"), counted(len(impact.layers), "layer")
    again, left, failed = len(impact.same), len(impact.untouched), len(impact.failed)
    return (
        f"Changed: {shown or 'no key'}{migrations}.",
        f"{rebuilt} to rebuild in {layers}: {counted(jobs, 'job')}, {duration(sum(map(times.cost, impact.changed)))}.",
        f"{again} rendered again and the same, {left} untouched, {failed} failed.",
    )


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def impact_json(impact: Impact, times: JobTimes) -> dict[str, Any]:
    """The same as values; `same` has the reason why each was rendered again."""
    return {
        **checks_values(impact_checks(impact)),
        "keys": sorted(impact.change.keys),
        "zipped": sorted(impact.change.with_zipped - impact.change.keys),
        "migrations": sorted(impact.change.migrations),
        "changed": {
            each.name: {
                **{
                    word: getattr(each, word) for word in ("added", "removed", "changed", "packages", "gone", "unnamed")
                },
                "jobs": each.jobs,
                "seconds": times.cost(each),
            }
            for each in impact.changed
        },
        "layers": impact.layers,
        "cycles": impact.cycles,
        "same": dict(impact.same),
        "untouched": impact.untouched,
        "failed": {each.name: each.error for each in impact.failed},
        "missed": impact.missed,
        "seconds": sum(map(times.cost, impact.changed)),
    }
