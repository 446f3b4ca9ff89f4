"""Rerender feedstocks with feedstock-tools and with a peer in turn, whole processes, and print ratios of medians.

    python -m benchmarks.rerenders.rerender FEEDSTOCK ... --pinning DIR [--smithy DIR]
        --peer "COMMAND {feedstock} {pinning}"

Without --smithy, feedstock-tools writes `.ci_support` alone, and these files are compared; with a release of
conda-smithy it writes the whole tree, and all files are compared but the recipe and conda-forge.yml.

Both work on fresh copies. A feedstock laid out with its own pinning beside it (`NAME/feedstock`, `NAME/pinning`) needs
no `--pinning`. Only Python's bytecode is kept between runs, as for an installed program, but outside the source tree;
an uncounted first run creates it. Times are medians of wall-clock times, or the least processor times where the column
says so; compare the latter on a machine that does other work too. Peak memory is that of the largest process.

Each line of the table is printed as soon as it is known. A feedstock that either cannot rerender is reported and
skipped, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.support.command import Measured, measured

OURS = (
    f"{shlex.quote(sys.executable)} -m feedstock_tools rerender {{feedstock}} --pinning {{pinning}} --smithy {{smithy}}"
)
#: Parts of a feedstock that a rerender does not write.
NOT_WRITTEN = ("recipe", "conda-forge.yml", ".git")
_TITLES = ("ours s", "peer s", "ratio", "cpu s", "peer cpu", "ratio", "ours MiB", "peer MiB", "same")


class RunError(Exception):
    """A command did not succeed."""


@dataclass(frozen=True)
class Task:
    """A feedstock, and what it is rerendered with: `smithy` is a release, or `none` for `.ci_support` alone."""

    feedstock: Path
    pinning: Path
    smithy: str
    bytecode: Path

    @property
    def name(self) -> str:
        """The name of the feedstock."""
        return self.feedstock.parent.name if self.feedstock.name == "feedstock" else self.feedstock.name

    def run(self, command: str) -> tuple[Measured, dict[str, bytes]]:
        """Run a command on a fresh copy; return also the files that it left.

        Raises:
            RunError: it does not succeed.
        """
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with tempfile.TemporaryDirectory() as scratch:
            copy = shutil.copytree(self.feedstock, Path(scratch) / self.name)
            filled = {"feedstock": copy, "pinning": self.pinning, "smithy": self.smithy}
            words = [word.format(**filled) for word in shlex.split(command)]
            ended = measured(words, variables={**environment, "PYTHONPYCACHEPREFIX": str(self.bytecode)})
            if ended.returncode:
                raise RunError(f"{shlex.join(words)} exited with {ended.returncode}")
            paths = copy.rglob("*") if self.smithy != "none" else (copy / ".ci_support").glob("*.yaml")
            named = {path.relative_to(copy): path for path in paths if path.is_file()}
            written = {name.as_posix(): path for name, path in named.items() if name.parts[0] not in NOT_WRITTEN}
            return ended, {name: path.read_bytes() for name, path in written.items()}


def compared(task: Task, peer: str, runs: int, peer_runs: int) -> tuple[str, float]:
    """The line of a feedstock, and the ratio of wall times; runs alternate, so that both meet the same load.

    Raises:
        RunError: one of them cannot rerender the feedstock.
    """
    task.run(OURS)
    ours, theirs = [task.run(OURS)], []
    for _ in range(peer_runs):
        ours += [task.run(OURS) for _ in range(max(1, runs // peer_runs))]
        theirs.append(task.run(peer))
    recipe_format = "v1" if (task.feedstock / "recipe" / "recipe.yaml").is_file() else "v0"
    both = [[run for run, _ in made] for made in (ours, theirs)]
    walls, processors, memories = (
        [median(run.wall for run in runs) for runs in both],
        [min(run.seconds for run in runs) for runs in both],
        [max(run.memory for run in runs) / 2**20 for runs in both],
    )
    columns = [f"{mine:7.2f} {other:8.2f} {other / mine:7.0f} x" for mine, other in (walls, processors)]
    found, expected = ours[0][1], theirs[0][1]
    same = f"{sum(found.get(name) == content for name, content in expected.items())}/{len(expected)}"
    line = f"{task.name:30} {recipe_format} {' '.join(columns)} {memories[0]:8.0f} {memories[1]:9.0f} {same:>9}"
    return line, walls[1] / walls[0]


def main(arguments: Sequence[str]) -> int:
    """The table, and below it the median over all feedstocks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("feedstocks", nargs="+", type=Path, metavar="FEEDSTOCK")
    parser.add_argument("--peer", required=True, help="command with {feedstock} and {pinning}")
    parser.add_argument("--pinning", type=Path, help="default: `pinning` beside the feedstock")
    parser.add_argument("--smithy", default="none", help="release of conda-smithy for whole trees; default: none")
    parser.add_argument("--runs", type=int, default=5, help="runs of feedstock-tools")
    parser.add_argument("--peer-runs", type=int, default=1, help="runs of the peer")
    options = parser.parse_args(arguments)
    print("{:33} {:>7} {:>8} {:>9} {:>7} {:>8} {:>9} {:>8} {:>9} {:>9}".format("feedstock", *_TITLES), flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as bytecode:
        for given in options.feedstocks:
            feedstock = (given / "feedstock" if (given / "feedstock").is_dir() else given).resolve()
            pinning = (options.pinning or feedstock.parent / "pinning").resolve()
            task = Task(feedstock, pinning, options.smithy, Path(bytecode))
            try:
                line, ratio = compared(task, options.peer, options.runs, options.peer_runs)
            except RunError as error:
                print(f"{task.name:30} {error}", flush=True)
                continue
            ratios.append(ratio)
            print(line, flush=True)
    if ratios:
        print(f"median ratio {median(ratios):.0f}, smallest {min(ratios):.0f}")
    return 0 if len(ratios) == len(options.feedstocks) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
