"""Run the tests, from the top of the checkout: `python -m tests [pytest arguments]`.

On a first run this makes an environment of its own (standard library only), then hands over to pytest, with more
workers than cores. `-n 0` runs them one after the other, `--fast` leaves out the slow ones. A test that fails is run
once more, since many wait for processes and signals; the summary names each that passed only then.
"""

import os
import sys
from pathlib import Path

from feedstock_tools.bootstrap import run_in_environment

#: Options for pytest-rerunfailures; the caller's own come later and win, as they do over those for pytest-xdist.
ONCE_MORE = ["--reruns", "1", "-rR"]
#: Variables that make each process compile all modules again, and that hide a missing flush.
NOT_FOR_TESTS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
#: Many tests wait for a process, a signal or a limit: that number of extra workers keeps the cores busy meanwhile.
MORE_THAN_CORES = 3


def in_parallel() -> list[str]:
    """The options for pytest-xdist."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ["-n", str(cores + MORE_THAN_CORES), "--dist", "worksteal"]


def arguments(given: list[str]) -> list[str]:
    """The arguments of pytest: in parallel, unless it runs without the plugin for that."""
    without = "no:xdist" in given or "-pno:xdist" in given
    return [*([] if without else in_parallel()), *ONCE_MORE, *given]


def clear_environment() -> None:
    """Remove the variables that change what tests cost or see."""
    for name in NOT_FOR_TESTS:
        os.environ.pop(name, None)


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    clear_environment()
    sys.exit(run_in_environment("test", "python", ["-m", "pytest", *arguments(sys.argv[1:])]))
