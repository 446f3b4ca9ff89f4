"""The files that belong to the repository."""

from __future__ import annotations

import subprocess
from pathlib import PurePosixPath

from tests.support.paths import ROOT

#: Folders that tools leave behind; used where git cannot list the repository's files.
_LEFT_BEHIND = {"__pycache__", "build_artifacts"}


def tracked_files(folder: str = ".") -> tuple[PurePosixPath, ...]:
    """What git tracks below a folder of the checkout, and what it neither tracks nor ignores; paths from its top.

    Without git, or in an archive of the source, what lies there.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", folder]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        listed = (PurePosixPath(name) for name in listing.stdout.split("\0") if name)
        return tuple(path for path in listed if (ROOT / path).exists())
    found = (path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    return tuple(PurePosixPath(path.as_posix()) for path in found if not _LEFT_BEHIND & set(path.parts))
