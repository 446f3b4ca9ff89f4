"""The origin of a run's builds: the feedstock's commit, and the command line, without secrets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from feedstock_tools.redaction import redacted

#: The time limit of git, in seconds; on a slow disk the status of a large repository takes some of it.
_SECONDS = 60


def typed(arguments: Sequence[str]) -> str:
    """A command line without secrets."""
    return redacted(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def commit_of(folder: Path) -> str:
    """The commit of the git repository that a folder is in, with `+` if the folder differs; empty without one."""
    import subprocess

    git = _git(folder)
    try:
        commit = _output_of([*git, "rev-parse", "HEAD"]).strip()
        changed = _output_of([*git, "status", "--porcelain", "--", ".", ":(exclude)build_artifacts"])
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + ("+" if changed else "")


def epoch_of(folder: Path, machine: Mapping[str, str]) -> int | None:
    """The time that packages of a feedstock hold, in seconds since 1970: that of its commit; None without one.

    Args:
        folder: the feedstock.
        machine: the environment, whose `SOURCE_DATE_EPOCH` comes first (reproducible-builds.org).
    """
    import subprocess

    epoch = machine.get("SOURCE_DATE_EPOCH", "")
    if epoch.isascii() and epoch.isdigit():
        return int(epoch)
    try:
        time = _output_of([*_git(folder), "show", "--no-patch", "--format=%ct", "HEAD"])
        return int(time)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _git(folder: Path) -> list[str]:
    """git in a folder. Programs from the repository's own settings must not run."""
    return ["git", "-c", "core.fsmonitor=false", "-C", str(folder)]


def _output_of(command: Sequence[str]) -> str:
    import subprocess

    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS).stdout
