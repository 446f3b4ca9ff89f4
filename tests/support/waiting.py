"""Waiting for another process, and listing processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    """Poll a condition; the test fails after the given number of seconds.

    The limit only ends a test that hangs, so it is far longer than a loaded machine needs.
    """
    deadline, pause = time.monotonic() + seconds, 0.005
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds} s"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.1)


def processes_below(folder: Path) -> dict[int, str]:
    """The processes that work in a folder or below it, with their command lines (Linux)."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):  # noqa: PTH115 - the folder may be gone
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().replace("\0", " ")
            except OSError:
                continue
    return found
