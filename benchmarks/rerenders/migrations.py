"""What `many impact` says of feedstocks for which conda-forge's bot opened a migration, just before it did.

    python -m benchmarks.rerenders.migrations MIRROR [--most N] [--seed N] [--since DATE]

MIRROR is as for `benchmarks.histories`. A case is a commit that adds a migration to a feedstock: the files of its
parent are indexed, and the migration is added to the pinning of its last rerender. `impact` should name the feedstock.
Prints a line for each case in which it is not, and the totals; a migration that the index rules out exits with 1.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.histories import MIGRATIONS, Commit, Pinnings, feedstocks, git, lay_out, main_line, options
from feedstock_tools.bounds.limits import released
from feedstock_tools.errors import FeedstockError
from feedstock_tools.many.impact import impact
from feedstock_tools.many.index import INDEX, opened_index


def cases(mirror: Path, since: str) -> list[tuple[Commit, str]]:
    """Commits that add a migration, with its path."""
    found = []
    for repository in feedstocks(mirror):
        recent = set(git(repository, "log", "--first-parent", f"--since={since}", "--format=%H").decode().split())
        for commit in main_line(repository):
            added = [path for path, kind in commit.paths.items() if kind == "A" and path.startswith(MIGRATIONS)]
            if commit.name in recent and len(added) == 1:
                found.append((commit, added[0]))
    return found


def outcome(commit: Commit, path: str, pinning: Path, folder: Path) -> str:
    """`named`, `same` (rendered again without a change), `ruled out`, or `fails: ` with the reason."""
    name = commit.feedstock.removesuffix("-feedstock")
    lay_out(commit.repository, commit.parent, folder / "feedstocks" / commit.feedstock)
    migration = folder / Path(path).name
    migration.write_text(commit.text(path))
    with released(), opened_index(folder / INDEX, make=True) as index:
        for each in index.update(folder / "feedstocks", 1):
            if each.reason:
                return f"fails: {each.reason}"
        found = impact(index, pinning, migration)
    if name in found.untouched:
        return "ruled out"
    if name in found.same:
        return "same"
    return f"fails: {found.failed[0].error}" if found.failed else "named"


def main() -> int:
    """1 if a migration that was opened is ruled out."""
    parser = options(__doc__)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--since", default="2 years ago")
    given = parser.parse_args()
    found = cases(given.mirror, given.since)
    chosen = random.Random(given.seed).sample(found, min(given.most, len(found)))  # noqa: S311
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        pinnings = Pinnings(given.mirror, Path(scratch) / "pinnings")
        for number, (commit, path) in enumerate(chosen):
            day = pinnings.day_of(commit)
            try:
                what = outcome(commit, path, day.pinning, Path(scratch, str(number))) if day else "fails: no rerender"
            except (FeedstockError, subprocess.CalledProcessError) as error:
                what = f"fails: {error}"
            counts[what.partition(":")[0]] += 1
            if what != "named":
                sys.stdout.write(f"{commit.feedstock} {commit.name[:8]} {Path(path).name}: {what[:200]}\n")
    sys.stdout.write(f"{len(chosen)} of {len(found)}: {dict(counts)}\n")
    return int(bool(counts["ruled out"]))


if __name__ == "__main__":
    sys.exit(main())
