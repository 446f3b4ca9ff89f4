"""Platforms and CI services that maintainers chose, chosen again by the edits, and rerendered.

    python -m benchmarks.edits.edit_platforms MIRROR [--most 20] [--each 1] [--seed 1]

Counted are commits of the main line that give platforms a place in conda-forge.yml: keys of `build_platform` that are
new, and of `provider` that are new or have another value; keys that go, or platforms that the edits do not know, do not
count. --most are chosen at random, up to --each of a feedstock, among those whose last rerender before was by
conda-smithy 3.7.5 or later, when the keys got their names of today.

The edits start from the commit with the parent's `build_platform`, `provider` and `test` in conda-forge.yml, and with a
skip for the platform alone if the commit removed one. A platform that is built on the one that conda-forge crosses from
is `platform add`, any other choice `provider`. Afterwards the two mappings must be those of the commit, and so must
names and bytes of the rerendered configurations, with the rules and the pinning of the last rerender in its history.
`test` is compared apart: whether both limit tests where they cannot run (`test_on_native_only` did so before).
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks.edits.histories import (
    FORGE,
    Commit,
    Day,
    Pinnings,
    blocks,
    drawn,
    lines_back,
    rerendered,
    sides,
    without,
)
from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.platforms import _CROSSED_FROM, _PLATFORMS, PROVIDERS, add_platform, set_provider
from feedstock_tools.errors import FeedstockError

_ABOUT = re.compile(r"^\s*(?:linux|osx|win)\w*:|^(?:build_platform|provider|test|test_on_native_only)\s*:")
_KEYS = ("build_platform", "provider", "test", "test_on_native_only")
_SKIP = re.compile(r"skip:.*\[(?:aarch64|ppc64le|arm64|win)\]")


def settings(text: str) -> dict[str, Any]:
    """The parts of a conda-forge.yml that the edits are about."""
    try:
        found = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return {}
    return {key: found[key] for key in _KEYS if key in found} if isinstance(found, dict) else {}


def start(commit: Commit) -> str:
    """The conda-forge.yml of the commit with the parent's choices, as text of both where they change other lines."""
    before, after = sides(commit, FORGE)
    others = {key: value for key, value in (yaml.safe_load(after) or {}).items() if key not in _KEYS}
    wanted = {**others, **settings(before)}
    text, _ = without(before, after, lambda line: bool(_ABOUT.search(line)), lines_back)
    try:
        if yaml.safe_load(text) == wanted:
            return text
    except yaml.YAMLError:
        pass
    return str(yaml.safe_dump(wanted))


def recipe_before(commit: Commit, name: str) -> str:
    """The recipe of the commit with the skips for one platform that it removed."""
    text: list[str] = []
    for block in blocks(*sides(commit, name)):
        removed = any(_SKIP.search(line) for line in block.before) and not any("skip" in line for line in block.after)
        text += block.before if removed and not block.same else block.after
    return "".join(text)


def steps(commit: Commit) -> list[tuple[str, str]]:
    """The edits of a commit: platform and service, '' for `platform add`; none if it did something else."""
    before, after = (settings(text) for text in sides(commit, FORGE))
    found = []
    for key in ("build_platform", "provider"):
        old, new = before.get(key) or {}, after.get(key) or {}
        if not isinstance(old, dict) or not isinstance(new, dict) or old.keys() - new.keys():
            return []
        for name in (name for name in new if old.get(name) != new[name]):
            crossed = key == "build_platform" and _CROSSED_FROM.get(name) == new[name] and name not in old
            if name not in _PLATFORMS or not (crossed or (key == "provider" and new[name] in PROVIDERS)):
                return []
            found.append((name, "" if crossed else new[name]))
    return found


def edited(draft: Draft, commit: Commit) -> Draft:
    """The draft with the edits of a commit."""
    for name, service in steps(commit):
        draft = set_provider(draft, name, service) if service else add_platform(draft, name)
    return draft


def replay(commit: Commit, day: Day, counts: Counter[str]) -> str:
    """Make the choices of a commit again: 'equal', or what differs."""
    with tempfile.TemporaryDirectory() as place:
        theirs, ours = commit.lay_out(Path(place) / "theirs"), commit.lay_out(Path(place) / "ours")
        (ours / FORGE).write_bytes(start(commit).encode())
        if commit.recipe:
            (ours / commit.recipe).write_bytes(recipe_before(commit, commit.recipe).encode())
        try:
            expected = rerendered(theirs, day)
        except FeedstockError:
            return "the commit does not rerender"
        try:
            draft = edited(open_draft(ours), commit)
            draft.changes().apply()
            given = rerendered(ours, day)
        except FeedstockError as error:
            return f"error: {str(error).splitlines()[0].rpartition(': ')[2]}"
        texts = [(folder / FORGE).read_text("utf-8") for folder in (ours, theirs)]
    own, theirs_set = settings(texts[0]), settings(texts[1])
    wrong = [key for key in _KEYS[:2] if own.get(key) != theirs_set.get(key)]
    limits = ["test" in each or "test_on_native_only" in each for each in (own, theirs_set)]
    counts["both limit tests, or neither does"] += limits[0] == limits[1]
    counts["test limited by the edit alone"] += limits == [True, False]
    counts["same mappings"] += not wrong
    counts["same configurations"] += given == expected
    if given != expected:
        missing, more = expected.keys() - given.keys(), given.keys() - expected.keys()
        wrong.append(f"configurations (+{len(more)} -{len(missing)})")
    return ", ".join(wrong) or "equal"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--most", type=int, default=20, help="commits in all")
    parser.add_argument("--each", type=int, default=1, help="commits of each feedstock")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    commits = drawn(given.mirror, given.seed)
    taken: Counter[str] = Counter()
    results: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as cache:
        pinnings = Pinnings(given.mirror, Path(cache))
        for commit in commits:
            if taken.total() == given.most:
                break
            if commit.paths.get(FORGE) != "M" or taken[commit.feedstock] == given.each or not steps(commit):
                continue
            day = pinnings.day_of(commit)
            if day is None or not day.rules.has_build_platforms:
                continue
            taken[commit.feedstock] += 1
            result = replay(commit, day, counts)
            results["equal" if result == "equal" else "not equal"] += 1
            if result != "equal":
                edits = " ".join(f"{name}={service or 'crossed'}" for name, service in steps(commit))
                print(f"{commit.feedstock} {commit.name[:8]} {edits}: {result}", flush=True)
    for title, found in (("commits:", results), ("of these:", counts)):
        print(title, dict(found.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
