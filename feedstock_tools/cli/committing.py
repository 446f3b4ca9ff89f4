"""`--commit`: the repository of a feedstock, asked for before anything is written, and the commit with its message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import no_signs, say

if TYPE_CHECKING:
    from feedstock_tools.feedstock.git import Repository
    from feedstock_tools.files.changes import Changes


def repository_of(feedstock: Path, requested: str | None) -> Repository | None:
    """The repository to commit to; None where no commit was requested.

    Raises:
        InputError: git is not installed, or the feedstock is not the top of a repository.
    """
    from feedstock_tools.feedstock.git import find_repository

    return find_repository(feedstock, os.environ) if requested is not None else None


def commit(repository: Repository, changes: Changes, own: str, requested: str | None) -> None:
    """Commit changes that were applied, and say so on stderr.

    Args:
        own: the command's own message, and `requested` is the value of `--commit`.
    """
    editing = requested == options.EDIT_MESSAGE
    message = own if requested == options.OWN_MESSAGE or editing else requested or ""
    if editing:
        no_signs()
    done = repository.commit(changes, message, edit=editing)
    say(f"committed: {message.splitlines()[0]}" if done else "nothing to commit", err=True)
