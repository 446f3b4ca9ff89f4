"""Run all tests, from the top of the checkout: `python -m tests [pytest arguments]`.

On a first run this makes an environment of its own (standard library only), then hands over to pytest.
"""

import os
import sys
from pathlib import Path

from feedstock_tools.bootstrap import run_in_environment

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(run_in_environment("test", "python", ["-m", "pytest", *sys.argv[1:]]))
