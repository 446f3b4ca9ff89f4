"""Notes on generated files of a feedstock: updated before a build, or outdated where a command only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from feedstock_tools.feedstock.up_to_date import Updates
from feedstock_tools.wording import counted

#: The maximum number of files that a note lists.
_FEW = 4


def updated_notes(updates: Updates) -> Iterator[str]:
    """Notes on files that were generated and rerendered before a build."""
    if updates.edited:
        yield f"Not regenerated, since edited by hand: {', '.join(updates.edited)}. Building the existing files."
    if updates.generated:
        yield f"Regenerated from feedstock.yaml: {', '.join(updates.generated)}"
    if updates.rerendered:
        yield f"Rerendered {updates.rerendered} files of .ci_support from the recipe"


def outdated_note(pending: Updates) -> str:
    """One line on outdated files that a command reads as they are, with the command that updates them."""
    if pending.generated:
        state = f"{_listed(pending.generated)}: outdated, since feedstock.yaml or feedstock-tools has changed"
        return f"note: {state}; read as they are. To update them: feedstock-tools generate"
    if pending.rerendered:
        state = f"{counted(pending.rerendered, 'file')} of .ci_support: outdated, since the recipe has changed"
        return f"note: {state}; read as they are. To update them: feedstock-tools rerender"
    return (
        f"note: {_listed(pending.edited)}: edited by hand, so feedstock.yaml no longer describes them; read as they are"
    )


def ahead_note(pending: Updates) -> str:
    """One line on outdated files that `build` would update, before a plan for the updated ones."""
    files = _listed(pending.generated) or f"{counted(pending.rerendered, 'file')} of .ci_support"
    return f"note: `build` would first update {files}; this plan is for the updated files, and nothing is written"


def _listed(files: Sequence[str]) -> str:
    rest = len(files) - _FEW
    return ", ".join([*files[:_FEW], *([f"{counted(rest, 'more file')}"] if rest > 0 else [])])
