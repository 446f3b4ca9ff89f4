"""Opening the feedstock of a command line: to build it, to read it, or to see what a build would do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import READING
from feedstock_tools.channel.properties import STAND_IN
from feedstock_tools.cli.printing import say
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.channel.kept import Pinning
    from feedstock_tools.cli.options import Place
    from feedstock_tools.feedstock.folder import Feedstock
    from feedstock_tools.feedstock.layout import Artifacts
    from feedstock_tools.feedstock.up_to_date import Updates


def note_on_stderr(text: str) -> None:
    """Print a note to the user, apart from the command's result."""
    say(text, err=True)


def opened_to_build(feedstock: Feedstock, place: Place, engine: str | None, note: Callable[[str], object]) -> Workspace:
    """A feedstock with generated files updated, in the workspace of its builds.

    Args:
        place: its artifacts folder and channels.
        note: called with the updated files.

    Raises:
        InputError: its files are invalid, or the output folder is among them.
        WorkError: generated files cannot be written.
    """
    from feedstock_tools.builds.plan.workspace import artifacts_of, workspace_of
    from feedstock_tools.feedstock.up_to_date import Updates, refresh

    artifacts = artifacts_of(feedstock, place.output_dir)
    updates = refresh(feedstock, artifacts, os.environ)
    if updates != Updates():
        from feedstock_tools.report.generated_files import updated_notes

        for text in updated_notes(updates):
            note(text)
    return workspace_of(feedstock, place.output_dir, place.channels, os.environ, engine, READING)


def opened_to_read(place: Place) -> Workspace:
    """The feedstock in a given folder, or the one here, as it is; a note on stderr names outdated generated files.

    Raises:
        InputError: there is no feedstock, its files are invalid, or the output folder is among them.
        WorkError: the artifacts folder cannot be written.
    """
    workspace, pending = _opened(place)
    _note_outdated(pending)
    return workspace


@contextmanager
def opened_ahead(place: Place) -> Iterator[Workspace]:
    """The feedstock as a build would find it after updating generated files, which happens in a temporary copy.

    Raises:
        InputError: there is no feedstock, its files are invalid, or the output folder is among them.
        WorkError: the artifacts folder or the copy cannot be written.
    """
    workspace, pending = _opened(place)
    if pending.is_empty:
        _note_outdated(pending)
        yield workspace
        return
    from feedstock_tools.feedstock.up_to_date import updated_copy
    from feedstock_tools.report.generated_files import ahead_note

    note_on_stderr(ahead_note(pending))
    with updated_copy(workspace.feedstock) as (copy, recipe):
        yield workspace.moved(copy, recipe)


def refuse_without_feedstock(folder: Path) -> None:
    """Refuse a folder without a feedstock, before anything is printed about a pinning or a release.

    A `conda-forge.yml` can name another folder for the recipe, which a rerender reads.

    Raises:
        InputError: there is none.
    """
    from feedstock_tools.feedstock.folder import find_feedstock

    if not (folder / "conda-forge.yml").is_file():
        find_feedstock(None if folder == Path() else folder, Path.cwd())


def tidy(feedstock: Path | None = None, artifacts: Artifacts | None = None) -> None:
    """Remove what killed commands left behind in these folders, the user's cache and the system's temporary folder."""
    from feedstock_tools.feedstock.cleaning import remove_leftovers_of

    remove_leftovers_of(feedstock, artifacts, os.environ)


def _opened(place: Place) -> tuple[Workspace, Updates]:
    """The feedstock as it is, and what a build would update in it."""
    from feedstock_tools.builds.plan.workspace import artifacts_of, workspace_of
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.feedstock.up_to_date import outdated

    feedstock = find_feedstock(place.feedstock, Path.cwd())
    artifacts = artifacts_of(feedstock, place.output_dir)
    tidy(artifacts=artifacts)
    pending = outdated(feedstock, artifacts, os.environ)
    return workspace_of(feedstock, place.output_dir, place.channels, os.environ, None, READING), pending


def _note_outdated(pending: Updates) -> None:
    if pending.is_empty and not pending.edited:
        return
    from feedstock_tools.report.generated_files import outdated_note

    note_on_stderr(outdated_note(pending))


def migrations_of(pinning: str | None) -> Path | None:
    """The folder of the pinning's migrations; None without a pinning."""
    found = pinning_of(pinning)
    return None if found is None else found.migrations_folder


def pinning_of(pinning: str | None) -> Pinning | None:
    """The given pinning, or the newest fetched one; None without one."""
    from feedstock_tools.channel.kept import cached_pinnings, find_pinning, pinning_cache

    cache = pinning_cache(os.environ)
    if pinning is None and not cached_pinnings(cache):
        return None
    return find_pinning(pinning, cache)


_NOTE = "Reading the STAND-IN channel: its packages have the metadata of real ones and no real contents."


def readable(channels: Sequence[str], platforms: Iterable[Platform]) -> tuple[str, ...]:
    """The given channels, with the folders of the stand-in channel in place of `stand-in`.

    Creates the stand-in channel for these platforms if it is missing.

    Raises:
        InputError: `stand-in` is given beside a real channel.
        WorkError: the stand-in channel cannot be written.
    """
    if STAND_IN.origin not in channels:
        return tuple(channels)
    from feedstock_tools.builds.channels import channels_named, names_to_solve_in

    chosen = channels_named(channels)
    say(_NOTE, err=True)
    fallback = Path(tempfile.gettempdir(), "feedstock-tools")
    by_subdir = names_to_solve_in(chosen, platforms, os.environ, fallback)
    return tuple(name for names in by_subdir.values() for name in names)


@contextmanager
def suggesting_stand_in() -> Iterator[None]:
    """Name the stand-in channel in the error of a channel on a server that cannot be read.

    Raises:
        WorkError: there was one.
    """
    try:
        yield
    except WorkError as error:
        from feedstock_tools.channel.repodata import UnreadChannelError

        if not isinstance(error, UnreadChannelError):
            raise
        hint = f"Use --channel {STAND_IN.origin} to read one that is made on the spot."
        raise WorkError(error.mistakes[0].message, hint=hint) from error
