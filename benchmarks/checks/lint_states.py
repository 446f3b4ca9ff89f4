"""States of real feedstocks, linted: how long that takes, and what is found.

    python -m benchmarks.checks.lint_states MIRROR [--states 1000] [--jobs 2] [--seed 1] [--findings FILE]

MIRROR holds bare clones as OWNER+NAME/repo. States are commits of each main line that changed the recipe or
`.ci_support`, chosen at random, as many of each feedstock as of any other as far as it has them. Unpacking them is not
counted. Prints the wall time of the whole, processor time of each state, and the findings by rule; FILE gets one line
for each finding, and for each state that cannot be linted the reason.
"""

import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from benchmarks.histories import feedstocks, git, lay_out, options
from feedstock_tools.check.linting.lint import lint_feedstock
from feedstock_tools.errors import FeedstockError

#: What a state is unpacked of: what lint reads.
READ = ("recipe", ".ci_support", "conda-forge.yml")
#: More than a state's name, and the findings or the error of a state: (seconds, lines of text).
Result = tuple[str, float, list[tuple[str, str]]]


def chosen(mirror: Path, number: int) -> list[tuple[Path, str]]:
    """Commits of all feedstocks, in turn one of each."""
    log = ("log", "--first-parent", "--format=%H", "--", "recipe", ".ci_support")
    listed = {repository: git(repository, *log).decode().split() for repository in feedstocks(mirror)}
    for hashes in listed.values():
        random.shuffle(hashes)
    found: list[tuple[Path, str]] = []
    while len(found) < number and any(listed.values()):
        found += [(repository, hashes.pop()) for repository, hashes in listed.items() if hashes]
    return found[:number]


def unpacked(repository: Path, commit: str, folder: Path) -> bool:
    """Unpack a state; whether it has a recipe and configurations."""
    names = set(git(repository, "ls-tree", "--name-only", commit).decode().split())
    return ".ci_support" in names and lay_out(repository, commit, folder, *(name for name in READ if name in names))


def linted(folder: Path) -> Result:
    start = time.process_time()
    try:
        found = [(each.rule, f"{each.path}:{each.line}: {each.message}") for each in lint_feedstock(folder).findings]
    except FeedstockError as error:
        found = [("error", str(error).splitlines()[0])]
    return folder.name, time.process_time() - start, found


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path)
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as top:
        folders: list[Path] = []
        for repository, commit in chosen(given.mirror, given.states * 2):
            folder = Path(top) / f"{repository.parent.name.partition('+')[2]}@{commit[:12]}"
            if len(folders) < given.states and unpacked(repository, commit, folder):
                folders.append(folder)
        start = time.monotonic()
        with get_context("forkserver").Pool(given.jobs) as pool:
            results: list[Result] = list(pool.imap_unordered(linted, folders, chunksize=4))
        wall = time.monotonic() - start
    report(results, wall)
    if given.findings:
        lines = [f"{state}\t{rule}\t{text}\n" for state, _, found in sorted(results) for rule, text in found]
        given.findings.write_text("".join(lines), encoding="utf-8")
    return 0


def report(results: Sequence[Result], wall: float) -> None:
    times = sorted((seconds, state) for state, seconds, _ in results)
    rules = Counter(rule for _, _, found in results for rule, _ in found)
    print(f"{len(results)} states in {wall:.0f} s; processor time {sum(seconds for seconds, _ in times):.0f} s,")
    print(f"  median {statistics.median(seconds for seconds, _ in times):.3f} s; the slowest:")
    for seconds, state in reversed(times[-8:]):
        print(f"  {seconds:.2f} s  {state}")
    print(f"{sum(not found for _, _, found in results)} states without a finding")
    for rule, number in rules.most_common():
        print(f"  {number:5}  {rule}")


if __name__ == "__main__":
    sys.exit(main())
