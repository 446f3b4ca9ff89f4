"""The origin of a run's builds: the feedstock's commit, and the command line, without secrets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.redaction import redacted

__all__ = ["commit_of", "typed"]


def typed(arguments: Sequence[str]) -> str:
    """A command line without secrets."""
    return redacted(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def commit_of(folder: Path) -> str:
    """The commit of the git repository that a folder is in, with `+` if the folder differs; empty without one."""
    import subprocess

    # Programs from the repository's own git settings must not run.
    git = ["git", "-c", "core.fsmonitor=false", "-C", str(folder)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", ".", ":(exclude)build_artifacts"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed else "")
