"""Whether a host can build at all: what fails where it cannot is no failure of a row."""

from __future__ import annotations

import shutil
from pathlib import Path

#: Bytes of a disk that must be free for a build.
LEAST_DISK = 256 << 20


def why_unfit(root: Path) -> str | None:
    """Why a host cannot build anything now; None if it can.

    Args:
        root: the folder of its builds.
    """
    try:
        free = shutil.disk_usage(root).free
    except OSError as error:
        return f"its folder {root} cannot be used: {error.strerror or error}"
    return f"its disk is full: {free >> 20} MiB are free in {root}" if free < LEAST_DISK else None
