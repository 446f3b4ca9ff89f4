"""Review the first commit of merged pull requests, and compare the review with the changes of their later commits.

    python -m benchmarks.checks.reviewed_pull_requests REPOSITORIES PINNING [NAME...]

REPOSITORIES is a folder of git repositories of feedstocks (`<name>-feedstock`, or `<owner>+<name>-feedstock/repo`),
PINNING the repository of conda-forge-pinning. A NAME with a number, as in `gdal#1063`, is that pull request, merged
with a merge commit. Of each other NAME the newest merged pull request is taken whose first commit
changes the recipe and whose later commits change it again: there somebody found what was missing. The first commit is
reviewed against the commit it started from, with the pinning of its day; so is the last. Printed is what the review of
the first commit finds, what of it the last commit no longer has, and what the later commits changed in packages.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.histories import git as output_of_git
from benchmarks.histories import unpack
from feedstock_tools.check.differences import compare_feedstocks
from feedstock_tools.check.reviewing import Review, review_feedstock
from feedstock_tools.errors import FeedstockError
from feedstock_tools.report.checks.differences import differences_markdown

#: A pull request with more commits is a project, and its first commit no proposal.
_MOST_COMMITS = 12
#: The changes by later commits that are printed.
_MOST_LINES = 40


@dataclass(frozen=True)
class PullRequest:
    """Its title, and three commits: where it started, its first one, and its last one."""

    title: str
    base: str
    first: str
    last: str


def git(repository: Path, *words: str) -> str:
    """The output of git in a repository."""
    return output_of_git(repository, *words).decode(errors="replace").strip()


def pull_request(repository: Path, number: str) -> PullRequest | None:
    """The pull request of a number; None if no merge commit names it."""
    pattern = f"^Merge pull request #{number} "
    found = git(repository, "log", "--all", "--merges", "--format=%H %P %s", f"--grep={pattern}").splitlines()
    if not found:
        return None
    merge, one, other, title = found[0].split(" ", 3)
    first = git(repository, "rev-list", "--reverse", "--no-merges", "--topo-order", f"{one}..{other}").split()[0]
    return PullRequest(title, git(repository, "rev-parse", f"{first}^"), first, merge)


def pull_requests(repository: Path) -> Iterator[PullRequest]:
    """Those that fit the rule, newest first."""
    for line in git(repository, "log", "--merges", "--first-parent", "--format=%H %P %s").splitlines():
        merge, _, rest = line.partition(" ")
        one, other, title = rest.split(" ", 2)
        if not title.startswith("Merge pull request #"):
            continue
        commits = git(repository, "rev-list", "--reverse", "--no-merges", "--topo-order", f"{one}..{other}").split()
        touching = [commit for commit in commits if _changes_recipe(repository, commit)]
        if 2 <= len(commits) <= _MOST_COMMITS and len(touching) > 1 and touching[0] == commits[0]:
            yield PullRequest(title, git(repository, "rev-parse", f"{commits[0]}^"), commits[0], merge)


def _changes_recipe(repository: Path, commit: str) -> bool:
    names = git(repository, "diff-tree", "--no-commit-id", "--name-only", "-r", commit).splitlines()
    return any(name in ("recipe/meta.yaml", "recipe/recipe.yaml") for name in names)


def findings(review: Review) -> set[str]:
    """What a review finds, a line each."""
    found = {f"lint: {each.message} [{each.rule}]" for each in review.lint}
    found |= {f"cuda check: {each.message}" for each in review.facts}
    found |= {f"build numbers: {each}" for each in review.numbers}
    stale = review.stale
    return found | ({f"not rerendered: {len(stale.files)} files"} if stale and stale.files else set())


def main(repositories: Path, pinning: Path, names: list[str]) -> None:
    """Review one pull request of each feedstock."""
    for asked in names:
        name, _, number = asked.partition("#")
        places = (repositories / f"{name}-feedstock", *repositories.glob(f"*+{name}-feedstock/repo"))
        repository = next(place for place in places if place.is_dir())
        request = pull_request(repository, number) if number else next(pull_requests(repository), None)
        if request is None:
            print(f"\n## {name}: no pull request fits")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            review(name, repository, pinning, request, Path(temporary))


def review(name: str, repository: Path, pinning: Path, request: PullRequest, folder: Path) -> None:
    """Print the review of one pull request."""
    day = git(repository, "show", "-s", "--format=%cI", request.first)
    pinned = git(pinning, "rev-list", "-1", "--first-parent", f"--before={day}", "HEAD")
    pins = unpack(pinning, pinned, folder / "pinning") / "recipe" / "conda_build_config.yaml"
    states = {
        part: unpack(repository, getattr(request, part), folder / f"{part}-feedstock")
        for part in ("base", "first", "last")
    }
    print(f"\n## {name}: {request.title}, {day[:10]}")
    try:
        began = time.process_time()
        early = review_feedstock(states["base"], states["first"], pinning=pins)
        seconds = time.process_time() - began
        late = review_feedstock(states["base"], states["last"], pinning=pins)
        later = compare_feedstocks(states["first"], states["last"])
    except FeedstockError as error:
        print(f"error: {error}")
        return
    before, after = findings(early), findings(late)
    print(f"verdict {'holds' if early.holds else 'mend'} in {seconds:.1f} s")
    for line in sorted(before):
        print(f"- {'mended later' if line not in after else 'stayed'}: {line}")
    for line in sorted(after - before):
        print(f"- came later: {line}")
    print(f"later commits: {differences_markdown(later).splitlines()[0]}")
    lines = {
        f"{lines.part}: {sign} {line}"
        for change in later.packages_changed
        for lines in change.changes
        for sign, each in (("-", lines.removed), ("+", lines.added))
        for line in each
    }
    for line in sorted(lines)[:_MOST_LINES]:
        print(f"  {line}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
