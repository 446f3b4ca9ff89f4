"""The commits of conda-forge's bots by kind, and how many of those with an edit of ours come out byte for byte.

    python -m benchmarks.edits.bot_commits MIRROR [--most 400]

Up to --most commits of each kind, evenly over the histories, are made again: the file before the commit is edited, and
compared with the file after it. A version of the pinning is opened at the commit's own time; settings are those whose
values the commit changed; of commits that bring `stdlib` or `python_min` among other things, the lines with these words
and the line above each are compared. MIRROR: see benchmarks/histories.py.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.histories import FORGE, PINNING, Commit, git, options
from feedstock_tools.check.linting.lint import rewritten
from feedstock_tools.check.linting.subject import Subject
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.migrations import close_migration, open_migration
from feedstock_tools.edit.platforms import drop_setting, set_setting
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import VARIANT_FILES, Document

_BOTS = r"regro-cf-autotick-bot|conda-forge-(admin|webservices|curator|linter)"
_KINDS = {
    "rerender": r"^(?!.*admin migration).*(re-?render|conda-smithy version)",
    "version": r"^(ENH:? ?)?(updated|update to|\w+) v?\d",
    "pinning close": r"^Close out migration",
    "pinning open": r"^Update pin for",
    "setting": r"migration (DotConda|CFEP13\w+|CondaForgeMasterToMain|CondaForgeYAMLTest|RAutomerge)|bot automerge",
    "migration add": r"^(MNT: ?)?Rebuild for|^bump build",
    "platform add": r"^migration: ?(OSXArm|ArchRebuild)",
}
_RECIPE = "recipe/meta.yaml"


def kind_of(title: str) -> str:
    """The edit that a commit is, or what its message calls it."""
    known = next((kind for kind, pattern in _KINDS.items() if re.search(pattern, title, re.IGNORECASE)), None)
    return known or re.sub(r"^.*admin migration |\d+", "", title)[:40]


def draft_of(folder: Path, commit: Commit, *paths: str) -> Draft:
    """Files before a commit, with its migrations on disk."""
    texts = {_RECIPE: "", **{path: commit.text(path, before=True) for path in paths}}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return Draft(
        folder, folder / _RECIPE, {folder / name: Document(folder / name, text) for name, text in texts.items()}
    )


def text_in(draft: Draft, path: str) -> str:
    """A file of a draft; '' where there is none."""
    document = draft.file(path)
    return document.text if document else ""


def opened(folder: Path, commit: Commit) -> bool:
    (path,) = [path for path, kind in commit.paths.items() if kind == "A"]
    text = commit.text(path)
    content = yaml.safe_load(text)
    versions = {key: value[0] for key, value in content.items() if isinstance(value, list)}
    key = next(key for key, value in versions.items() if Path(path).stem == key + value.replace(".", ""))
    (folder / "recipe/migrations").mkdir(parents=True)
    draft = open_migration(
        draft_of(folder, commit, VARIANT_FILES[0]), key, versions.pop(key), versions, content["migrator_ts"]
    )
    ours = text_in(draft, path)
    if "commit_message" not in content["__migrator"]:  # until January 2024
        ours = re.sub(r"  commit_message: .*\n", "", ours)
    return ours == text


def closed(folder: Path, commit: Commit) -> bool:
    (path,) = [path for path, kind in commit.paths.items() if kind == "D"]
    draft = close_migration(draft_of(folder, commit, VARIANT_FILES[0], path), Path(path).stem)
    return text_in(draft, VARIANT_FILES[0]) == commit.text(VARIANT_FILES[0])


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings by their keys with dots."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def settled(folder: Path, commit: Commit) -> bool:
    draft = draft_of(folder, commit, FORGE)
    before, after = (dict(leaves(yaml.safe_load(commit.text(FORGE, before=old)) or {})) for old in (True, False))
    for key in before.keys() - after.keys() - {""}:
        draft = drop_setting(draft, key)
    for key, value in after.items():
        if key and before.get(key, ...) != value:
            text = yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
            draft = set_setting(draft, key, text)
    return text_in(draft, FORGE) == commit.text(FORGE)


def marked(word: str, text: str) -> list[tuple[str, str]]:
    """The lines with a word, each with the one above, without numbers."""
    lines = [re.sub(r"\d+", "", line.rstrip()) for line in text.splitlines()]
    return [(lines[at - 1], line) for at, line in enumerate(lines) if word in line]


def ruled(word: str, *rules: str) -> Callable[[Path, Commit], bool]:
    def is_equal(folder: Path, commit: Commit) -> bool:
        draft = draft_of(folder, commit, _RECIPE)
        ours = draft.recipe.changed(rewritten(draft, *rules))
        return marked(word, ours.text) == marked(word, commit.text(_RECIPE))

    return is_equal


MADE = {"pinning open": opened, "pinning close": closed, "setting": settled}
WORDS = {"stdlib": ruled("stdlib(", "stdlib"), "python-min": ruled("python_min", "python-bound", "python-min")}


def commits(repository: Path, *words: str) -> Iterator[tuple[str, Commit]]:
    """The bots' commits with their titles, newest first."""
    log = ["log", "--no-merges", "--name-status", "--no-renames", "-E", f"--author={_BOTS}", "--format=%x00%H %s"]
    for block in git(repository, *log, *words).decode(errors="replace").split("\0")[1:]:
        head, _, rest = block.partition("\n")
        name, _, title = head.partition(" ")
        paths = (line.split("\t", 1) for line in rest.splitlines() if "\t" in line)
        yield title, Commit(repository, name, {path: kind for kind, path in paths})


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--most", type=int, default=400)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    found: dict[str, list[Commit]] = {kind: [] for kind in (*MADE, *WORDS)}
    for repository in sorted(given.mirror.glob("conda-forge+*-feedstock/repo")):
        for title, commit in commits(repository):
            counts[kind := kind_of(title)] += 1
            if kind in MADE and (kind != "setting" or FORGE in commit.paths):
                found[kind].append(commit)
        if repository.parent.name != PINNING:
            for word, pattern in (("stdlib", r"stdlib\("), ("python-min", "python_min")):
                brought = (commit for _, commit in commits(repository, "-G", pattern, "--", _RECIPE))
                found[word] += [
                    commit
                    for commit in brought
                    if commit.paths[_RECIPE] == "M" and not re.search(pattern, commit.text(_RECIPE, before=True))
                ]
    print(*(f"{number:6} {kind}" for kind, number in counts.most_common(20)), sep="\n")
    Subject.pinned = lambda self, key: "3.9"  # type: ignore[method-assign]  # the lowest Python of most of these days
    for kind, all_ in found.items():
        results: Counter[str] = Counter()
        for commit in all_[:: max(1, len(all_) // given.most)]:
            try:
                with tempfile.TemporaryDirectory() as place:
                    is_equal = (MADE | WORDS)[kind](Path(place), commit)
                results["equal" if is_equal else "different"] += 1
            except (FeedstockError, ValueError, StopIteration, yaml.YAMLError) as error:
                results[type(error).__name__] += 1
        print(kind, dict(results.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
