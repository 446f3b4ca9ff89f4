"""The files that can be removed, or were, as a list for a terminal and as values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from feedstock_tools.feedstock.cleaning import KINDS, Removable
from feedstock_tools.wording import size_text, table

_HEAD = ("what", "size", "where")


def found_text(found: Sequence[Removable]) -> str:
    """A table of the files that can be removed, with the sum."""
    if not found:
        return "There is nothing to remove."
    rows = [(KINDS[each.kind], size_text(each.size), str(each.path)) for each in found]
    return f"{table(_HEAD, rows, right=frozenset({1}))}\n\n{size_text(_sum(found))} in all"


def removed_text(found: Sequence[Removable]) -> str:
    """How much was removed."""
    removed = [each for each in found if each.removed]
    return f"Removed {size_text(_sum(removed))}."


def kept_text(found: Sequence[Removable]) -> str:
    """The files that were not removed, a line each; empty if all were."""
    return "\n".join(f"kept {each.path}: {each.kept}" for each in found if each.kept)


def removable_json(found: Sequence[Removable]) -> dict[str, Any]:
    """All of it as JSON values, sizes in bytes."""
    return {
        "bytes": _sum(found),
        "removed_bytes": _sum([each for each in found if each.removed]),
        "items": [
            {
                "kind": each.kind,
                "path": each.path,
                "bytes": each.size,
                "removed": each.removed,
                "kept": each.kept or None,
            }
            for each in found
        ],
    }


def _sum(found: Sequence[Removable]) -> int:
    return sum(each.size for each in found)
