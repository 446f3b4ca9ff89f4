#!/usr/bin/env python3
"""Build configurations of a feedstock: `python build-locally.py linux_64_cuda11.2`, or `--help`.

On a first run this makes an environment of its own (standard library only), then hands over to `feedstock-tools build`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from feedstock_tools.bootstrap import run_in_environment

if __name__ == "__main__":
    sys.exit(run_in_environment("build", "python", ["-m", "feedstock_tools.cli.build_locally", *sys.argv[1:]]))
