"""Measure the start-up time of the most frequent commands, compared with another checkout in the same run.

Each command runs alternately from both checkouts in a new process; the least processor time and the least wall time of
all repetitions count, so that other work on the machine disturbs the figures little.

    python benchmarks/startup.py [--against CHECKOUT] [--repeat 15]

CHECKOUT is another checkout of this project with an environment of its own (`python -m feedstock_tools.bootstrap dev
python -V` makes it). Before the first repetition each checkout builds the example `gpuprobe` for one configuration into
a folder of its own, so that there is a ledger to read.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def seconds_of(checkout: Checkout, arguments: list[str]) -> tuple[float, float]:
    """Processor seconds and wall seconds of one call."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    run = subprocess.run(
        [str(checkout.python), *arguments],
        cwd=checkout.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        sys.exit(f"{' '.join(arguments)} failed in {checkout.folder}:\n{run.stdout}{run.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def least(checkouts: list[Checkout], name: str, repeat: int) -> list[tuple[float, float]]:
    """The least processor time and the least wall time of a command in each checkout."""
    times: list[list[tuple[float, float]]] = [[] for _ in checkouts]
    for _ in range(repeat):
        for checkout, measured in zip(checkouts, times, strict=True):
            measured.append(seconds_of(checkout, checkout.commands()[name]))
    return [(min(cpu for cpu, _ in measured), min(wall for _, wall in measured)) for measured in times]


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
            seconds_of(checkout, [*BUILD, CONFIGURATION, "--output-dir", str(checkout.output)])
            seconds_of(checkout, [*BUILD, "--list", "--output-dir", str(checkout.output)])
        print(f"load {os.getloadavg()[0]:.1f}; milliseconds of processor / wall time, least of {given.repeat}")
        for name in checkouts[0].commands():
            figures = least(checkouts, name, given.repeat)
            cells = [f"{cpu * 1000:7.0f} / {wall * 1000:5.0f}" for cpu, wall in figures]
            ratio = f"{figures[0][0] / figures[1][0]:6.2f}" if len(figures) == 2 else ""
            print(f"{name:32}" + "".join(f"{cell:>18}" for cell in cells) + ratio)


if __name__ == "__main__":
    main()
