"""Rerender feedstocks with feedstock-tools and with a peer in turn, whole processes, and print ratios of medians.

    python benchmarks/rerender.py FEEDSTOCK ... --pinning DIR --peer "COMMAND {feedstock} {pinning}"

Both work on fresh copies. A feedstock laid out with its own pinning beside it (`NAME/feedstock`, `NAME/pinning`) needs
no `--pinning`. Python's bytecode is kept between runs, as it is of an installed program, outside of the source tree;
nothing else is, and a run before the first that counts makes it. Times are wall-clock times, and processor times where
the column says so; on a machine that does other work too, the latter are what to compare. Peak memory is that of the
process itself (POSIX: the maximum resident set that `wait4` reports).
"""

from __future__ import annotations

import argparse
import atexit
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OURS = f"{shlex.quote(sys.executable)} -m feedstock_tools rerender {{feedstock}} --pinning {{pinning}}"


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall-clock and processor seconds, peak memory in MiB, and the configurations that it left."""

    seconds: float
    processor: float
    memory: float
    files: dict[str, bytes]


@cache
def _bytecode() -> Path:
    """A folder for bytecode, gone with this process."""
    folder = Path(tempfile.mkdtemp(prefix="bytecode-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run(command: str, feedstock: Path, pinning: Path) -> Run:
    """Run a command on a fresh copy of a feedstock; it must succeed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(_bytecode())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / (feedstock.parent.name if feedstock.name == "feedstock" else feedstock.name)
        shutil.copytree(feedstock, copy)
        words = [word.format(feedstock=copy, pinning=pinning) for word in shlex.split(command)]
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{shlex.join(words)} exited with {process.returncode}")
        files = {path.name: path.read_bytes() for path in (copy / ".ci_support").glob("*.yaml")}
    processor = usage.ru_utime + usage.ru_stime
    return Run(seconds, processor, usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024), files)


def compare(feedstock: Path, pinning: Path, peer: str, runs: int, peer_runs: int) -> str:
    """A line of the table: the peer's runs lie between ours, so that both meet the same machine."""
    run(OURS, feedstock, pinning)
    ours: list[Run] = [run(OURS, feedstock, pinning)]
    theirs: list[Run] = []
    for _ in range(peer_runs):
        ours += [run(OURS, feedstock, pinning) for _ in range(max(1, runs // peer_runs))]
        theirs.append(run(peer, feedstock, pinning))
    mine, other = (statistics.median(each.seconds for each in group) for group in (ours, theirs))
    busy, other_busy = (statistics.median(each.processor for each in group) for group in (ours, theirs))
    memory, other_memory = (max(each.memory for each in group) for group in (ours, theirs))
    same = sum(ours[0].files.get(name) == content for name, content in theirs[0].files.items())
    files = f"{same}/{len(theirs[0].files)}"
    name = feedstock.parent.name if feedstock.name == "feedstock" else feedstock.name
    wall = f"{mine:7.2f} {other:8.2f} {other / mine:7.0f} x"
    processor = f"{busy:7.2f} {other_busy:8.2f} {other_busy / busy:7.0f} x"
    return f"{name:30} {wall} {processor} {memory:8.0f} {other_memory:9.0f} {files:>9}"


def main(arguments: Sequence[str]) -> int:
    """The table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("feedstocks", nargs="+", type=Path, metavar="FEEDSTOCK")
    parser.add_argument("--peer", required=True, help="command with {feedstock} and {pinning}")
    parser.add_argument("--pinning", type=Path, help="default: `pinning` beside the feedstock")
    parser.add_argument("--runs", type=int, default=5, help="runs of feedstock-tools")
    parser.add_argument("--peer-runs", type=int, default=1, help="runs of the peer")
    options = parser.parse_args(arguments)
    header = ("feedstock", *("ours s", "peer s", "ratio", "cpu s", "peer cpu", "ratio", "ours MiB", "peer MiB", "same"))
    print("{:30} {:>7} {:>8} {:>9} {:>7} {:>8} {:>9} {:>8} {:>9} {:>9}".format(*header))
    for given in options.feedstocks:
        feedstock = given / "feedstock" if (given / "feedstock").is_dir() else given
        pinning = options.pinning or feedstock.parent / "pinning"
        print(
            compare(feedstock.resolve(), pinning.resolve(), options.peer, options.runs, options.peer_runs), flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
