"""Run the release in an environment of its own, made on the first run: `python -m maintenance.release 0.2.0`."""

import os
import sys
from pathlib import Path

from feedstock_tools.bootstrap import run_in_environment

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[2])
    sys.exit(run_in_environment("release", "python", ["-m", "maintenance.release.command", *sys.argv[1:]]))
