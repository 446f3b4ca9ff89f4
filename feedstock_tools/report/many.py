"""What a change of the pinning does to many feedstocks, as text and as values."""

from __future__ import annotations

from typing import Any

from feedstock_tools.many.impact import Impact
from feedstock_tools.wording import counted, duration, table

_MOST = 40


def impact_text(impact: Impact, seconds: float) -> str:
    """A table of the changed feedstocks in the order of rebuilding, and what is left alone.

    Args:
        seconds: the time of a job.
    """
    layer_of = {name: number for number, layer in enumerate(impact.layers, 1) for name in layer}
    changed = sorted(impact.changed, key=lambda each: (layer_of[each.name], -each.rebuilt, each.name))
    head = ("layer", "feedstock", "new jobs", "gone", "changed", "new packages")
    rows = [
        (
            str(layer_of[each.name]),
            each.name,
            *(str(len(names)) for names in (each.added, each.removed, each.changed, each.packages)),
        )
        for each in changed
    ]
    jobs = sum(each.rebuilt for each in changed)
    lines = [table(head, rows, right=frozenset({0, 2, 3, 4, 5}))] if rows else []
    lines += [
        f"Cycle: {', '.join(f'{pair} ({package})' for pair, package in cycle.items())}." for cycle in impact.cycles
    ]
    lines += [f"Fails: {each.name}: {each.error}" for each in impact.failed]
    keys = sorted(impact.change.keys)
    shown = ", ".join(keys[:_MOST]) + (f" and {len(keys) - _MOST} more" if len(keys) > _MOST else "")
    migrations = f"; {counted(len(impact.change.migrations), 'migration')}" if impact.change.migrations else ""
    lines.append(f"Changed: {shown or 'no key'}{migrations}.")
    rebuilt, layers = counted(len(changed), "feedstock"), counted(len(impact.layers), "layer")
    lines.append(f"{rebuilt} to rebuild in {layers}: {counted(jobs, 'job')}, {duration(jobs * seconds)}.")
    again, left, failed = len(impact.same), len(impact.untouched), len(impact.failed)
    lines.append(f"{again} rendered again and the same, {left} untouched, {failed} failed.")
    return "\n".join(lines)


def impact_json(impact: Impact, seconds: float) -> dict[str, Any]:
    """The same as values; `same` has the reason why each was rendered again."""
    return {
        "keys": sorted(impact.change.keys),
        "zipped": sorted(impact.change.with_zipped - impact.change.keys),
        "migrations": sorted(impact.change.migrations),
        "changed": {
            each.name: {
                **{word: getattr(each, word) for word in ("added", "removed", "changed", "packages", "gone")},
                "jobs": each.jobs,
            }
            for each in impact.changed
        },
        "layers": impact.layers,
        "cycles": impact.cycles,
        "same": dict(impact.same),
        "untouched": impact.untouched,
        "failed": {each.name: each.error for each in impact.failed},
        "seconds": sum(each.rebuilt for each in impact.changed) * seconds,
    }
