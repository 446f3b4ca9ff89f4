"""git, without the settings of the user and of the machine, and with an author."""

import os
import subprocess
from pathlib import Path

_OWN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_SETTINGS = ("user.name=a", "user.email=a@example.org", "init.defaultBranch=main", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> str:
    """What git prints in a folder."""
    command = ["git", "-C", str(folder), *(word for each in _SETTINGS for word in ("-c", each)), *words]
    return subprocess.run(command, env={**os.environ, **_OWN}, check=True, capture_output=True, text=True).stdout


def committed(folder: Path, message: str = "first") -> str:
    """Commit everything in a folder, which becomes a repository first if necessary; gives the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()
