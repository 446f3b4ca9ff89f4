"""Opening the feedstock of a command line: to build it, to read it, or to see what a build would do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import READING
from feedstock_tools.cli.options import EDIT_MESSAGE, OWN_MESSAGE, Place
from feedstock_tools.cli.printing import no_signs, say_note
from feedstock_tools.feedstock.folder import Feedstock, find_feedstock
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.builds.matrix.matrix import Matrix
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.feedstock.git import Repository
    from feedstock_tools.feedstock.layout import Artifacts
    from feedstock_tools.feedstock.up_to_date import Updates
    from feedstock_tools.files.changes import Changes

#: The maximum number of files that a note lists.
_FEW = 4


def opened_to_build(feedstock: Feedstock, place: Place, engine: str | None, note: Callable[[str], object]) -> Workspace:
    """A feedstock with generated files updated, in the workspace of its builds.

    Args:
        place: its artifacts folder and channels.
        note: called with the updated files.
    """
    from feedstock_tools.builds.plan.workspace import artifacts_of, workspace_of
    from feedstock_tools.feedstock.up_to_date import refresh

    updates = refresh(feedstock, artifacts_of(feedstock, place.output_dir), os.environ)
    if updates.edited:
        note(f"Not regenerated, since edited by hand: {', '.join(updates.edited)}. Building the existing files.")
    if updates.generated:
        note(f"Regenerated from feedstock.yaml: {', '.join(updates.generated)}")
    if updates.rerendered:
        note(f"Rerendered {updates.rerendered} files of .ci_support from the recipe")
    return workspace_of(feedstock, place.output_dir, place.channels, os.environ, engine, READING)


def opened_to_read(place: Place) -> Workspace:
    """The feedstock in a given folder, or the one here, as it is; a note on stderr names outdated generated files."""
    workspace, pending = _opened(place)
    _note_outdated(pending)
    return workspace


def read_matrix_of(place: Place, names: Sequence[str]) -> tuple[Workspace, Matrix]:
    """The same, with the state of the named configurations, or of all of them."""
    from feedstock_tools.builds.matrix.matrix import read_matrix

    workspace = opened_to_read(place)
    return workspace, read_matrix(workspace, workspace.chosen(names))


@contextmanager
def opened_for_plan(place: Place, engine: str | None = None) -> Iterator[Workspace]:
    """The feedstock as a build would find it after updating generated files, which happens in a temporary copy.

    Args:
        engine: the value of `--engine`.
    """
    workspace, pending = _opened(place, engine)
    if pending.is_empty:
        _note_outdated(pending)
        yield workspace
        return
    from feedstock_tools.feedstock.up_to_date import updated_copy

    files = _listed(pending.generated) or f"{counted(pending.rerendered, 'file')} of .ci_support"
    say_note(f"note: `build` would first update {files}; this plan is for the updated files, and nothing is written")
    with updated_copy(workspace.feedstock) as (copy, recipe):
        yield workspace.moved(copy, recipe)


def behind_spec(feedstock: Path) -> str | None:
    """Why the recipe is not what the spec says; a feedstock without a spec costs nothing."""
    if not (feedstock / "feedstock.yaml").is_file():
        return None
    from feedstock_tools.feedstock import up_to_date

    return up_to_date.behind_spec(feedstock)


def note_behind_spec(feedstock: Path) -> None:
    """Say so on stderr where a recipe is read that is not what the spec says."""
    if why := behind_spec(feedstock):
        say_note(f"note: {why}")


def refuse_without_feedstock(folder: Path) -> None:
    """Refuse a folder without a feedstock, before anything is printed about a pinning or a release.

    A `conda-forge.yml` can name another folder for the recipe, which a rerender reads.
    """
    if not (folder / "conda-forge.yml").is_file():
        find_feedstock(None if folder == Path() else folder, Path.cwd())


def tidy(feedstock: Path | None = None, artifacts: Artifacts | None = None) -> None:
    """Remove what killed commands left behind in these folders, the user's cache and the system's temporary folder."""
    from feedstock_tools.feedstock.cleaning import remove_leftovers_of

    remove_leftovers_of(feedstock, artifacts, os.environ)


def repository_of(feedstock: Path, requested: str | None) -> Repository | None:
    """The repository for `--commit`, before anything is written; None where no commit was requested."""
    from feedstock_tools.feedstock.git import find_repository

    return find_repository(feedstock, os.environ) if requested is not None else None


def commit_changes(repository: Repository, changes: Changes, own: str, requested: str | None) -> None:
    """Commit changes that were applied, with a note on stderr.

    Args:
        own: the command's own message, and `requested` is the value of `--commit`.
    """
    editing = requested == EDIT_MESSAGE
    message = own if requested == OWN_MESSAGE or editing else requested or ""
    if editing:
        no_signs()
    done = repository.commit(changes, message, edit=editing)
    say_note(f"committed: {message.splitlines()[0]}" if done else "nothing to commit")


def _opened(place: Place, engine: str | None = None) -> tuple[Workspace, Updates]:
    """The feedstock as it is, and what a build would update in it."""
    from feedstock_tools.builds.plan.workspace import artifacts_of, workspace_of
    from feedstock_tools.feedstock.up_to_date import outdated

    feedstock = find_feedstock(place.feedstock, Path.cwd())
    artifacts = artifacts_of(feedstock, place.output_dir)
    tidy(artifacts=artifacts)
    pending = outdated(feedstock, artifacts, os.environ)
    return workspace_of(feedstock, place.output_dir, place.channels, os.environ, engine, READING), pending


def _note_outdated(pending: Updates) -> None:
    """Name the outdated files, which are read as they are, with the command that updates them."""
    if pending.generated:
        outdated = f"{_listed(pending.generated)}: outdated, since feedstock.yaml or feedstock-tools has changed"
        say_note(f"note: {outdated}; read as they are. To update them: feedstock-tools generate")
    elif pending.rerendered:
        outdated = f"{counted(pending.rerendered, 'file')} of .ci_support: outdated, since the recipe has changed"
        say_note(f"note: {outdated}; read as they are. To update them: feedstock-tools rerender")
    elif pending.edited:
        edited = f"{_listed(pending.edited)}: edited by hand, so feedstock.yaml no longer describes them"
        say_note(f"note: {edited}; read as they are")


def _listed(files: Sequence[str]) -> str:
    rest = len(files) - _FEW
    return ", ".join([*files[:_FEW], *([f"{counted(rest, 'more file')}"] if rest > 0 else [])])
