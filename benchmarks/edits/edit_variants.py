"""Versions of CUDA and Python that maintainers added or dropped, made again by the edits, rerendered and rendered.

    python -m benchmarks.edits.edit_variants MIRROR [--jobs 2] [--feedstock NAME …] [--commit NAME …]

Candidates are all commits of the main lines of all fetched feedstocks that change a migration of CUDA or Python, a
variant file of the recipe, or a line of the recipe with a skip or a comparison with a version. A candidate counts if

- rerendering its parent and the commit, both with conda-smithy's rules and the pinning of the last rerender in the
  history of the commit, gives configurations that differ by exactly one version of CUDA or Python, over all platforms
  together, and a line that the commit changes is about this version;
- the start of the edit differs from the commit in the jobs of the version alone.

The edit starts from the commit without what it did to build the version, or no longer: the migrations of CUDA and
Python are those of the parent, so are variant files whose list of versions changed, and the changed lines of skips that
are about the version. All else that the maintainer changed stays, and is counted as other lines: patches, requirements,
tests that the version needed. `add-` takes migrations from the pinning of the commit's time. After the edit, names and
bytes of the rerendered configurations must be those of the commit, and the rendered packages the same
(`check.differences`). The lines that the edit changes are compared with those that the maintainer changed
for it, a migration that both add as one line.

Each commit is replayed once more from a stricter start, in which all changed lines that mention the version are those
of the parent, requirements and patches too: an edit cannot know these. The files of patches stay, since a maintainer
has written them before the edit. Lines go back one by one, or with all of their place where that makes no recipe. A
commit that is not equal, and that `GIVEN` has words for, is made again with these added to the command, and counted
apart.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.edits.deeds import MIGRATION, PINNED, VARIANTS, Deed, deed_of, listed, possible, version_in, versions
from benchmarks.edits.histories import (
    MIGRATIONS,
    RECIPES,
    Back,
    Commit,
    Pinnings,
    blocks,
    feedstocks,
    git,
    lines_back,
    main_line,
    place_back,
    sides,
    unpack,
    without,
    write_rerendered,
)
from feedstock_tools.check.differences import compare_feedstocks
from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.variants.lists import CUDA, PYTHON
from feedstock_tools.edit.variants.versions import add_version, drop_version
from feedstock_tools.errors import FeedstockError
from feedstock_tools.rerender.rerendering import Rerender, rerender

_GCC_11 = tuple(f"--with={key}_compiler_version=11" for key in ("c", "cxx", "fortran"))
#: What a maintainer would type after the version, by commit; `PINNING:NAME` is a migration in a commit of the pinning,
#: which a pull request had before.
GIVEN: Mapping[str, tuple[str, ...]] = {
    "07e1f9fe": ("--with=numpy=2.1",),
    "19bb5151": _GCC_11,
    "2843136a": ("--migration", "PINNING:9ecc39fa8:recipe/migrations/cuda130.yaml"),
    "469a96fc": ("--migration", "PINNING:c0bf9b981:recipe/migrations/cuda118.yaml"),
    "f5379277": _GCC_11,
}


def skip_lines(text: str) -> Iterator[str]:
    """The lines of a recipe's skips: keys, and the lists below them."""
    indent = -1
    for line in text.splitlines(keepends=True):
        column = len(line) - len(line.lstrip(" -"))
        if re.match(r"[\s-]*skip:", line):
            indent = len(line) - len(line.lstrip())
            yield line
        elif indent >= 0 and (column > indent and line.strip()):
            yield line
        else:
            indent = -1


def about(deed: Deed, name: str, *, strict: bool) -> Callable[[str], bool]:
    """Whether a changed line of the recipe is taken back."""
    skips = {line for text in sides(deed.commit, name) for line in skip_lines(text)}
    return lambda line: (strict or line in skips) and deed.about.search(line) is not None


def base(deed: Deed, folder: Path, *, strict: bool, back: Back = lines_back) -> tuple[Path, int]:
    """Lay out the commit without what it did for the version; with the number of other lines that it changed."""
    commit, others = deed.commit, 0
    commit.lay_out(folder)
    shutil.rmtree(folder / MIGRATIONS, ignore_errors=True)
    old = folder.with_name("parent")
    if not old.is_dir():
        unpack(commit.repository, commit.parent, old)
    new = folder.with_name("theirs")
    for path in {file for tree in (old, new) for file in (tree / MIGRATIONS).glob("*.y*ml")}:
        relative = path.relative_to(old if path.is_relative_to(old) else new)
        source = (old if MIGRATION.search(path.name) else new) / relative
        if source.is_file():
            (folder / MIGRATIONS).mkdir(exist_ok=True)
            shutil.copy(source, folder / relative)
    for name in VARIANTS:
        before, after = sides(commit, name)
        if listed(before, deed.choice.name) != listed(after, deed.choice.name):
            (folder / name).unlink(missing_ok=True)
            if before:
                (folder / name).write_bytes(before.encode())
    for name in RECIPES:
        if commit.paths.get(name) == "M":
            text, count = without(*sides(commit, name), about(deed, name, strict=strict), back)
            others += count
            (folder / name).write_bytes(text.encode())
    return folder, others


def edited(deed: Deed, draft: Draft) -> Draft:
    """The draft with the version added or dropped."""
    for version in deed.versions:
        if deed.adds:
            pinned = deed.day.pinning / "conda_build_config.yaml"
            draft = add_version(draft, deed.choice, version, deed.pinning / PINNED, pinned=pinned)
        else:
            draft = drop_version(draft, deed.choice, version, deed.day.pinning / "conda_build_config.yaml")
    return draft


def changed_lines(before: Path, after: Path) -> int:
    """The lines that differ between the recipes, variant files and migrations of two folders; one for a migration that
    only one of them has, since its text is the pinning's."""
    names = {*RECIPES, *VARIANTS}
    names |= {
        file.relative_to(tree).as_posix() for tree in (before, after) for file in (tree / MIGRATIONS).glob("*.y*ml")
    }
    texts = [
        [(tree / name).read_text("utf-8", "replace") if (tree / name).is_file() else "" for tree in (before, after)]
        for name in sorted(names)
    ]
    return sum(
        1 if MIGRATION.search(name) and not (old and new) else sum(len(block.lines) for block in blocks(old, new))
        for name, (old, new) in zip(sorted(names), texts, strict=True)
    )


def jobs(result: Rerender, deed: Deed) -> list[tuple[str, ...]]:
    """Platform, CUDA and Python of each configuration without the deed's version."""
    found = []
    for configuration in result.configurations:
        values = [configuration.values.get(choice.name, ("",))[0] for choice in (CUDA, PYTHON)]
        own = configuration.values.get(deed.choice.name, ("",))[0]
        if version_in(own) not in deed.versions:
            found.append((configuration.platform.subdir, *values))
    return sorted(found)


def is_separable(deed: Deed, ours: Path, theirs: Path) -> bool:
    """Whether the start of the edit differs from the commit in the jobs of the version alone."""
    try:
        results = [rerender(folder, pinning=deed.day.pinning, rules=deed.day.rules) for folder in (ours, theirs)]
    except FeedstockError:
        return False
    found = [set(deed.versions) & versions(result, deed.choice.name) for result in results]
    every = set(deed.versions)
    return found == ([set(), every] if deed.adds else [every, set()]) and jobs(results[0], deed) == jobs(
        results[1], deed
    )


def replay(deed: Deed, place: Path, counts: Counter[str], *, strict: bool = False) -> str:
    """Make a deed again: 'equal', or what differs from the commit; '' if it cannot be told from others."""
    for back in (lines_back, place_back):
        shutil.rmtree(place / ("strict" if strict else "ours"), ignore_errors=True)
        ours, others = base(deed, place / ("strict" if strict else "ours"), strict=strict, back=back)
        if is_separable(deed, ours, place / "theirs"):
            break
    else:
        return ""
    start = shutil.copytree(ours, ours.with_name(f"start-{ours.name}"))
    try:
        edited(deed, open_draft(ours)).changes().apply()
        own, theirs = changed_lines(start, ours), changed_lines(start, place / "theirs")
        write_rerendered(ours, deed.day)
        differences = compare_feedstocks(place / "theirs", ours, rules=deed.day.rules)
    except FeedstockError as error:
        return f"error: {str(error).splitlines()[0].rpartition(': ')[2]}"
    counts["commits with a diff at least as large"] += own <= theirs
    counts["lines of the edits"] += own
    counts["lines of the maintainers for it"] += theirs
    counts["other lines of the maintainers"] += others
    jobs = f"jobs +{len(differences.jobs_added)} -{len(differences.jobs_removed)} ~{len(differences.jobs_changed)}"
    if differences.jobs_added or differences.jobs_removed or differences.jobs_changed:
        return f"other configurations ({jobs})"
    if differences or differences.only_hashes:
        parts = sorted({lines.part for change in differences.packages_changed for lines in change.changes})
        return f"other packages ({', '.join(parts) or 'hashes'})"
    return "equal" if own <= theirs else f"equal, but {own} lines for {theirs}"


def made_with(deed: Deed, place: Path, words: tuple[str, ...], pinnings: Pinnings) -> str:
    """Make a deed again with more words on the command line: 'equal', or that it differs."""
    ours, _ = base(deed, place / "given", strict=False)
    found = []
    for word in words:
        _, pinned, named = word.partition("PINNING:")
        path = place / named.rpartition("/")[2]
        if pinned:
            path.write_bytes(git(pinnings.repository, "show", named))
        found.append(str(path) if pinned else word)
    edits = [word for version in deed.versions for word in (deed.name, version, *found)]
    command = [sys.executable, "-m", "feedstock_tools", "edit", *edits]
    subprocess.run([*command, "--write", "--feedstock", ours, "--pinning", deed.pinning], check=True, stdout=-3)
    write_rerendered(ours, deed.day)
    differences = compare_feedstocks(place / "theirs", ours, rules=deed.day.rules)
    jobs = differences.jobs_added or differences.jobs_removed or differences.jobs_changed
    return "differs" if differences or differences.only_hashes or jobs else "equal"


def candidates(mirror: Path, names: list[str], only: list[str]) -> Iterator[Commit]:
    """The commits of the main lines that may have made one of the edits."""
    for repository in feedstocks(mirror):
        commits = main_line(repository)
        chosen = not names or any(name == repository.parent.name.partition("+")[2] for name in names)
        yield from (
            commit
            for commit in (commits if chosen else ())
            if (not only or any(commit.name.startswith(name) for name in only)) and possible(commit)
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a commit: why it does not count, or how each replay ended."""

    commit: Commit
    why: str = ""
    name: str = ""
    version: str = ""
    result: str = ""
    strict: str = ""
    words: tuple[str, ...] = ()
    with_words: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


def outcome(commit: Commit, mirror: Path, cache: Path) -> Outcome:
    """Replay a commit; `cache` has a folder of pinnings for each process."""
    pinnings = Pinnings(mirror, cache / str(os.getpid()))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        deed = deed_of(commit, pinnings, Path(place))
        result = deed if isinstance(deed, str) else replay(deed, Path(place), counts)
        if isinstance(deed, str) or not result:
            return Outcome(commit, result or "other jobs come or go with it")
        strict = replay(deed, Path(place), Counter(), strict=True)
        words = () if result.startswith("equal") else GIVEN.get(commit.name[:8], ())
        with_words = made_with(deed, Path(place), words, pinnings) if words else ""
    return Outcome(commit, "", deed.name, " ".join(deed.versions), result, strict, words, with_words, counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--feedstock", nargs="*", default=[], help="these feedstocks alone")
    parser.add_argument("--commit", nargs="*", default=[], help="these commits alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    why: Counter[str] = Counter()
    equal: dict[str, Counter[str]] = {}
    places: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    commits = candidates(given.mirror, given.feedstock, given.commit)
    with tempfile.TemporaryDirectory() as cache, ProcessPoolExecutor(given.jobs) as pool:
        for found in pool.map(partial(outcome, mirror=given.mirror, cache=Path(cache)), commits):
            if found.why:
                why[found.why] += 1
                continue
            tally = equal.setdefault(found.name, Counter())
            places.setdefault(found.name, set()).add(found.commit.feedstock)
            tally["commits"] += 1
            tally["equal"] += found.result.startswith("equal")
            tally["equal, no larger"] += found.result == "equal"
            tally["equal from the stricter start"] += found.strict.startswith("equal")
            tally["equal with more words"] += found.with_words == "equal"
            counts.update(found.counts)
            title = f"{found.commit.feedstock} {found.commit.name[:8]} {found.name} {found.version}"
            more = f"; {found.with_words} with {' '.join(found.words)}" if found.words else ""
            print(f"{title}: {found.result}; strict: {found.strict or 'cannot be separated'}{more}", flush=True)
    for name, tally in sorted(equal.items()):
        print(f"{name}: {dict(tally)} of {len(places[name])} feedstocks")
    print(f"all: {dict(sum(equal.values(), Counter()))} of {len(set().union(*places.values()))} feedstocks")
    for title, numbers in (("not counted:", why), ("lines:", counts)):
        print(title, dict(numbers.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
