"""An attempt that takes one second and builds nothing: what `benchmarks.builds.fleet carrying` lets hosts perform."""

from __future__ import annotations

import time
from pathlib import Path

from feedstock_tools.builds.fleet.host.spool import append
from feedstock_tools.builds.fleet.results.events import Finished


def main(attempt: str, root: str) -> int:
    """Wait for a second, and report the end."""
    time.sleep(1)
    append(Path(attempt), Finished("built"))
    return 0
