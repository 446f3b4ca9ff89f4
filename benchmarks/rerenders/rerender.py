"""Rerender feedstocks with feedstock-tools and with a peer in turn, whole processes, and print ratios of medians.

    python -m benchmarks.rerenders.rerender FEEDSTOCK ... --pinning DIR [--smithy DIR]
        --peer "COMMAND {feedstock} {pinning}"

Without --smithy, feedstock-tools writes `.ci_support` alone, and these files are compared; with a release of
conda-smithy it writes the whole tree, and all files are compared but the recipe and conda-forge.yml.

Both work on fresh copies. A feedstock laid out with its own pinning beside it (`NAME/feedstock`, `NAME/pinning`) needs
no `--pinning`. Only Python's bytecode is kept between runs, as for an installed program, but outside the source tree;
an uncounted first run creates it. Times are medians of wall-clock times, or the least processor times where the column
says so; compare the latter on a machine that does other work too. Peak memory is that of the largest process (POSIX:
the maximum resident set that `wait4` reports for a command and its children).

The table goes to standard output, each line as soon as it is known, even for a feedstock that was interrupted; every
run goes to standard error. A feedstock that either cannot rerender is reported and skipped, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shlex
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.command import measured

OURS = (
    f"{shlex.quote(sys.executable)} -m feedstock_tools rerender {{feedstock}} --pinning {{pinning}} --smithy {{smithy}}"
)
#: Parts of a feedstock that a rerender does not write.
NOT_WRITTEN = ("recipe", "conda-forge.yml", ".git")


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall-clock and processor seconds, peak memory in MiB, and the files that it left."""

    seconds: float
    processor: float
    memory: float
    files: dict[str, bytes]


@cache
def _bytecode() -> Path:
    """A folder for bytecode that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="bytecode-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class RunError(Exception):
    """A command did not succeed."""


@dataclass
class Comparison:
    """The completed runs of both on one feedstock."""

    name: str
    recipe_format: str
    ours: list[Run] = field(default_factory=list)
    theirs: list[Run] = field(default_factory=list)

    def add(self, runs: list[Run], made: Run) -> None:
        """Record a run, and print it."""
        runs.append(made)
        which = "ours" if runs is self.ours else "peer"
        numbers = f"{made.seconds:8.2f} s, {made.processor:8.2f} s of processor time, {made.memory:5.0f} MiB"
        print(f"  {self.name} {which} {len(runs)}: {numbers}", file=sys.stderr, flush=True)

    @property
    def ratio(self) -> float:
        """The ratio of the peer's wall-clock time to ours."""
        return _median(self.theirs, "seconds") / _median(self.ours, "seconds")

    @property
    def memory(self) -> float:
        """Our largest peak, MiB."""
        return max(each.memory for each in self.ours)

    def __str__(self) -> str:
        pairs = [
            (_median(self.ours, "seconds"), _median(self.theirs, "seconds")),
            (min(each.processor for each in self.ours), min(each.processor for each in self.theirs)),
        ]
        columns = [f"{mine:7.2f} {other:8.2f} {other / mine:7.0f} x" for mine, other in pairs]
        expected = self.theirs[0].files
        same = sum(self.ours[0].files.get(name) == content for name, content in expected.items())
        memory = f"{self.memory:8.0f} {max(each.memory for each in self.theirs):9.0f}"
        return f"{self.name:30} {self.recipe_format} {' '.join(columns)} {memory} {f'{same}/{len(expected)}':>9}"


def _median(runs: Sequence[Run], what: str) -> float:
    return float(statistics.median(getattr(each, what) for each in runs))


def run(command: str, feedstock: Path, pinning: Path, smithy: str) -> Run:
    """Run a command on a fresh copy of a feedstock.

    Args:
        smithy: a release of conda-smithy, `none` for `.ci_support` alone.

    Raises:
        RunError: it does not succeed.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(_bytecode())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / (feedstock.parent.name if feedstock.name == "feedstock" else feedstock.name)
        shutil.copytree(feedstock, copy)
        words = [word.format(feedstock=copy, pinning=pinning, smithy=smithy) for word in shlex.split(command)]
        ended = measured(words, variables=environment)
        if ended.returncode:
            raise RunError(f"{shlex.join(words)} exited with {ended.returncode}")
        return Run(ended.wall, ended.seconds, ended.memory / 2**20, _files(copy, whole=smithy != "none"))


def _files(feedstock: Path, *, whole: bool) -> dict[str, bytes]:
    paths = feedstock.rglob("*") if whole else (feedstock / ".ci_support").glob("*.yaml")
    named = {path.relative_to(feedstock): path for path in paths if path.is_file()}
    return {name.as_posix(): path.read_bytes() for name, path in named.items() if name.parts[0] not in NOT_WRITTEN}


def compare(
    found: Comparison, feedstock: Path, pinning: Path, peer: str, smithy: str, runs: int, peer_runs: int
) -> None:
    """Alternate the peer's runs with ours, so that both meet the same load.

    Raises:
        RunError: one of them cannot rerender the feedstock.
    """
    run(OURS, feedstock, pinning, smithy)
    found.add(found.ours, run(OURS, feedstock, pinning, smithy))
    for _ in range(peer_runs):
        for _ in range(max(1, runs // peer_runs)):
            found.add(found.ours, run(OURS, feedstock, pinning, smithy))
        found.add(found.theirs, run(peer, feedstock, pinning, smithy))


def main(arguments: Sequence[str]) -> int:
    """The table, and below it the medians over all feedstocks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("feedstocks", nargs="+", type=Path, metavar="FEEDSTOCK")
    parser.add_argument("--peer", required=True, help="command with {feedstock} and {pinning}")
    parser.add_argument("--pinning", type=Path, help="default: `pinning` beside the feedstock")
    parser.add_argument("--smithy", default="none", help="release of conda-smithy for whole trees; default: none")
    parser.add_argument("--runs", type=int, default=5, help="runs of feedstock-tools")
    parser.add_argument("--peer-runs", type=int, default=1, help="runs of the peer")
    options = parser.parse_args(arguments)
    header = (
        "feedstock",
        "",
        *("ours s", "peer s", "ratio", "cpu s", "peer cpu", "ratio", "ours MiB", "peer MiB", "same"),
    )
    print("{:30} {:2} {:>7} {:>8} {:>9} {:>7} {:>8} {:>9} {:>8} {:>9} {:>9}".format(*header), flush=True)
    done: list[Comparison] = []
    failed = 0
    for given in options.feedstocks:
        feedstock = (given / "feedstock" if (given / "feedstock").is_dir() else given).resolve()
        pinning = (options.pinning or feedstock.parent / "pinning").resolve()
        recipe_format = "v1" if (feedstock / "recipe" / "recipe.yaml").is_file() else "v0"
        found = Comparison(feedstock.parent.name if feedstock.name == "feedstock" else feedstock.name, recipe_format)
        try:
            compare(found, feedstock, pinning, options.peer, options.smithy, options.runs, options.peer_runs)
        except RunError as error:
            failed += 1
            print(f"{found.name:30} {error}", flush=True)
            continue
        finally:
            if found.ours and found.theirs:
                done.append(found)
                print(found, flush=True)
    if done:
        ratios = sorted(each.ratio for each in done)
        print(f"median ratio {statistics.median(ratios):.0f}, smallest {ratios[0]:.0f}", end="; ")
        print(f"peak memory of feedstock-tools at most {max(each.memory for each in done):.0f} MiB")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
