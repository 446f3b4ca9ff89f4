"""What an import found (what is copied, left out, different), and the named variant files, as text and JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from feedstock_tools.facts.cuda import PinningRow
from feedstock_tools.wording import counted, shown, table, values_of

if TYPE_CHECKING:
    from feedstock_tools.importing import Difference, Imported, VerbatimBlock

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
    lines += [*differing(imported.differences), *differing(imported.text_differences)]
    if not imported.differences:
        texts = (
            " but for the texts named" if imported.text_differences else ", tests, scripts and descriptions included"
        )
        lines.append(f"the generated recipe renders to the same{texts}")
    return "".join(f"{line}\n" for line in lines)


def differing(differences: Sequence[Difference]) -> list[str]:
    """What differs, the same of several configurations once."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for difference in differences:
        key = (difference.what, difference.written, difference.generated)
        found.setdefault(key, []).append(difference.where)
    lines = []
    for (subject, written, generated), places in list(found.items())[:_MOST_SHOWN]:
        where = places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1} more"
        lines.append(
            f"differs: {shown(subject)}: {shown(written) or 'nothing'} became {shown(generated) or 'nothing'} ({where})"
        )
    if len(found) > _MOST_SHOWN:
        lines.append(f"differs: {len(found) - _MOST_SHOWN} more; --json has all")
    return lines


def _place(block: VerbatimBlock) -> str:
    return f"{f'output {block.output}' if block.output else 'the recipe'}, {block.section}"


def imported_values(imported: Imported) -> dict[str, Any]:
    """The summary as JSON values."""
    return {
        "outputs": imported.outputs,
        "configurations": imported.configurations,
        "lines": imported.lines,
        "verbatim_lines": imported.verbatim_lines,
        "verbatim": [asdict(block) for block in imported.verbatim],
        "left_out": list(imported.lost),
        "comments_left_out": imported.comments_left,
        "differences": [asdict(each) for each in imported.differences],
        "text_differences": [asdict(each) for each in imported.text_differences],
    }


def variants_table(rows: Collection[PinningRow], width: int | None) -> str:
    """The rows as a table for people, in a terminal of some width; None: any."""
    head = ("name", "pinning", "compiler", "C library", "CUDA compiler", "cuDNN", "image")
    return table(head, [_cells(row) for row in rows], width=width, spare=("image", "CUDA compiler"))


def _cells(row: PinningRow) -> tuple[str, ...]:
    def cell(*keys: str) -> str:
        return " ".join(row.values[key] for key in keys if key in row.values)

    return (
        row.name,
        row.date,
        cell("c_compiler", "c_compiler_version"),
        cell("c_stdlib", "c_stdlib_version"),
        cell("cuda_compiler") if row.cuda else "",
        cell("cudnn") if row.cuda else "",
        cell("docker_image").removeprefix("quay.io/condaforge/"),
    )


def variants_json(rows: Collection[PinningRow]) -> list[dict[str, Any]]:
    """The rows for JSON."""
    names = ("cuda", "origin", "commit", "date", "note", "values")
    return [{"name": row.name, "platform": row.platform.subdir, **values_of(row, *names)} for row in rows]
