"""Opening the feedstock of a command line: find it, update generated files, read its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import READING
from feedstock_tools.cli.printing import say

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.feedstock.layout import Artifacts

__all__ = ["note_on_stderr", "opened", "tidy"]


def note_on_stderr(text: str) -> None:
    """Print a note to the user, apart from the command's result."""
    say(text, err=True)


def opened(
    feedstock: Path | None,
    output: Path | None,
    channels: Sequence[str],
    *,
    engine: str | None = None,
    note: Callable[[str], object] = note_on_stderr,
) -> Workspace:
    """The feedstock in a given folder, or the one here, with generated files updated.

    Args:
        note: called with the updated files.

    Raises:
        InputError: there is no feedstock, its files are invalid, or the output folder is among them.
        WorkError: generated files cannot be written.
    """
    from feedstock_tools.builds.plan.workspace import artifacts_of, open_workspace
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.feedstock.up_to_date import Refreshed, refresh

    found = find_feedstock(feedstock, Path.cwd())
    artifacts = artifacts_of(found, output)
    tidy(found.folder, artifacts)
    refreshed = refresh(found, artifacts, os.environ)
    if refreshed != Refreshed():
        from feedstock_tools.report.run.text import refreshed_notes

        for text in refreshed_notes(refreshed):
            note(text)
    return open_workspace(found.folder, output, channels, os.environ, engine, READING)


def tidy(feedstock: Path | None = None, artifacts: Artifacts | None = None) -> None:
    """Remove what killed commands left behind in these folders, the user's cache and the system's temporary folder."""
    from feedstock_tools.feedstock.leftovers import remove_leftovers_of

    remove_leftovers_of(feedstock, artifacts, os.environ)
