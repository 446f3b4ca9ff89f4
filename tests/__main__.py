"""Run the tests, from the top of the checkout: `python -m tests [pytest arguments]`.

On a first run this makes an environment of its own (standard library only), then hands over to pytest, with a worker
for each core. `-n 0` runs them one after the other, `--fast` leaves out the slow ones. A test that fails is run
once more, since many wait for processes and signals; the summary names each that passed only then.
"""

import os
import sys
from pathlib import Path

from feedstock_tools.bootstrap import run_in_environment

#: Options for pytest-xdist and pytest-rerunfailures; the caller's own come later and win.
IN_PARALLEL = ["-n", "logical", "--dist", "worksteal"]
ONCE_MORE = ["--reruns", "1", "-rR"]


def arguments(given: list[str]) -> list[str]:
    """The arguments of Python: pytest in parallel, unless pytest is to run without the plugin that does it."""
    without = "no:xdist" in given or "-pno:xdist" in given
    return ["-m", "pytest", *([] if without else IN_PARALLEL), *ONCE_MORE, *given]


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(run_in_environment("test", "python", arguments(sys.argv[1:])))
