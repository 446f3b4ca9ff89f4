"""What an import found, as text and JSON: what is copied, what is left out, what differs."""

from __future__ import annotations

from typing import Any

from feedstock_tools.edit.importing.importing import Imported, VerbatimBlock
from feedstock_tools.wording import counted, shown

__all__ = ["imported_text", "imported_values"]

#: Differences that are shown one by one.
_MOST_SHOWN = 20


def imported_text(imported: Imported) -> str:
    """The summary of an import."""
    share = 100 * imported.verbatim_lines / imported.lines
    lines = [
        f"{counted(imported.outputs, 'output')}, {counted(imported.configurations, 'configuration')} compared",
        f"{imported.verbatim_lines} of {counted(imported.lines, 'line')} verbatim ({share:.0f} %)",
        *(f"  {_place(block)}: {counted(block.lines, 'line')}" for block in imported.verbatim),
        *(f"left out: {shown(text)}" for text in imported.lost),
    ]
    if imported.comments_left:
        lines.append(f"left out: {counted(imported.comments_left, 'line')} of comment")
    found: dict[tuple[str, str, str], list[str]] = {}
    for difference in imported.differences:
        key = (difference.what, difference.written, difference.generated)
        found.setdefault(key, []).append(difference.where)
    for (subject, written, generated), places in list(found.items())[:_MOST_SHOWN]:
        where = places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1} more"
        lines.append(
            f"differs: {shown(subject)}: {shown(written) or 'nothing'} became {shown(generated) or 'nothing'} ({where})"
        )
    if len(found) > _MOST_SHOWN:
        lines.append(f"differs: {len(found) - _MOST_SHOWN} more; --json has all")
    if not found:
        lines.append("the generated recipe renders to the same")
    return "".join(f"{line}\n" for line in lines)


def _place(block: VerbatimBlock) -> str:
    return f"{f'output {block.output}' if block.output else 'the recipe'}, {block.section}"


def imported_values(imported: Imported) -> dict[str, Any]:
    """The summary as JSON values."""
    return {
        "outputs": imported.outputs,
        "configurations": imported.configurations,
        "lines": imported.lines,
        "verbatim_lines": imported.verbatim_lines,
        "verbatim": [{"output": b.output, "section": b.section, "lines": b.lines} for b in imported.verbatim],
        "left_out": list(imported.lost),
        "comments_left_out": imported.comments_left,
        "differences": [
            {"where": each.where, "what": each.what, "written": each.written, "generated": each.generated}
            for each in imported.differences
        ],
    }
