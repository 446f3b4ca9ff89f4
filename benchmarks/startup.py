"""Measure the start-up time of the most frequent commands, compared with another checkout in the same run.

Each command runs alternately from both checkouts in a new process; the least processor time and the least wall time of
all repetitions count, so that other work on the machine disturbs the figures little.

    python -m benchmarks.startup [--against CHECKOUT] [--repeat 15]

CHECKOUT is another checkout of this project with an environment of its own (`python -m feedstock_tools.bootstrap dev
python -V` makes it). Before the first repetition each checkout builds the example `gpuprobe` for one configuration into
a folder of its own, so that there is a ledger to read.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support import command
from tests.support.paths import ROOT

CONFIGURATION = "linux_64_cuda11.2_py3.11"
BUILD = ["-m", "feedstock_tools.cli.build_locally"]
TOOLS = ["-m", "feedstock_tools"]


@dataclass(frozen=True)
class Checkout:
    """A checkout with the folder that its example is built into."""

    folder: Path
    output: Path

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        environments = self.folder / ".environments"
        found = sorted(environments.glob("dev-*/bin/python")) or sorted(environments.glob("build-*/bin/python"))
        if not found:
            sys.exit(
                f"{self.folder} has no environment; make one with: python -m feedstock_tools.bootstrap dev python -V"
            )
        return found[0]

    def commands(self) -> dict[str, list[str]]:
        """The measured commands, by their names in the table."""
        here = ["--output-dir", str(self.output)]
        return {
            "feedstock-tools --help": [*TOOLS, "--help"],
            "feedstock-tools build --help": [*TOOLS, "build", "--help"],
            "import feedstock_tools.api": ["-c", "import feedstock_tools.api"],
            "build-locally.py --list": [*BUILD, "--list", *here],
            "build with nothing to do": [*BUILD, CONFIGURATION, *here],
            "status": [*TOOLS, "status", "--feedstock", "examples/gpuprobe", *here],
            "rerender --check": [*TOOLS, "rerender", "examples/gpuprobe", "--check"],
        }


def measured(checkout: Checkout, arguments: list[str]) -> command.Measured:
    """One call in a new process."""
    words = [str(checkout.python), *arguments]
    run = command.measured(words, checkout.folder, {**os.environ, "PYTHONPATH": str(checkout.folder)})
    if run.returncode:
        sys.exit(f"{' '.join(arguments)} failed in {checkout.folder}:\n{run.stdout}{run.stderr}")
    return run


def least(checkouts: list[Checkout], name: str, repeat: int) -> list[tuple[float, float]]:
    """The least processor time and the least wall time of a command in each checkout."""
    runs = [[measured(checkout, checkout.commands()[name]) for checkout in checkouts] for _ in range(repeat)]
    return [(min(run.seconds for run in each), min(run.wall for run in each)) for each in zip(*runs, strict=True)]


def main() -> None:
    """Print a table: a command a line, milliseconds of processor and wall time, and the ratio to the other checkout."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeat", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [ROOT, *([given.against.resolve()] if given.against else [])]
        checkouts = [Checkout(folder, Path(scratch, str(number))) for number, folder in enumerate(folders)]
        for checkout in checkouts:
            measured(checkout, [*BUILD, CONFIGURATION, "--output-dir", str(checkout.output)])
            measured(checkout, [*BUILD, "--list", "--output-dir", str(checkout.output)])
        print(f"load {os.getloadavg()[0]:.1f}; milliseconds of processor / wall time, least of {given.repeat}")
        for name in checkouts[0].commands():
            figures = least(checkouts, name, given.repeat)
            cells = [f"{cpu * 1000:7.0f} / {wall * 1000:5.0f}" for cpu, wall in figures]
            ratio = f"{figures[0][0] / figures[1][0]:6.2f}" if len(figures) == 2 else ""
            print(f"{name:32}" + "".join(f"{cell:>18}" for cell in cells) + ratio)


if __name__ == "__main__":
    main()
