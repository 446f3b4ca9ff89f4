"""The commits of conda-forge's bots by kind, and how many of those with an edit of ours come out byte for byte.

    python -m benchmarks.edits.bot_commits MIRROR [--most 400]

Up to --most commits of each kind, evenly over the histories, are made again: the file before the commit is edited, and
compared with the file after it. A version of the pinning is opened at the commit's own time; settings are those whose
values the commit changed; of commits that bring `stdlib` or `python_min` among other things, the lines with these words
and the line above each are compared. MIRROR: see benchmarks/histories.py.

Some commits do more than their kind says, and are counted apart. `version`: more than a bump of edit_versions.py.
`migration add`: other lines of the recipe than build numbers. `platform add`: lines of conda-forge.yml are written
anew, or get `test_on_native_only`, which conda-smithy has given up.
"""

import difflib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.edits import edit_versions
from benchmarks.histories import FORGE, MIGRATIONS, PINNING, Commit, git, options
from feedstock_tools.check.linting.lint import rewritten
from feedstock_tools.check.linting.subject import Subject
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.migrations import add_migration, close_migration, open_migration
from feedstock_tools.edit.platforms import add_platform, drop_setting, set_setting
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
_BUILD = re.compile(r"\bnumber:|\bset build|\bbuild(_number)?: *\d")


def kind_of(title: str) -> str:
    """The edit that a commit is, or what its message calls it."""
    known = next((kind for kind, pattern in _KINDS.items() if re.search(pattern, title, re.IGNORECASE)), None)
    return known or re.sub(r"^.*admin migration |\d+", "", title)[:40]


def draft_of(folder: Path, commit: Commit, *paths: str) -> Draft:
    """Files before a commit, with its migrations on disk."""
    recipe = commit.recipe or _RECIPE
    texts = {recipe: "", **{path: commit.text(path, before=True) for path in paths}}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return Draft(
        folder, folder / recipe, {folder / name: Document(folder / name, text) for name, text in texts.items()}
    )


def text_in(draft: Draft, path: str) -> str:
    """A file of a draft; '' where there is none."""
    document = draft.file(path)
    return document.text if document else ""


def _migrations_of(commit: Commit) -> list[str]:
    return [kind for path, kind in commit.paths.items() if path.startswith(MIGRATIONS)]


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


def versioned(folder: Path, commit: Commit) -> bool:
    document, _ = edit_versions.edited(commit, Counter())
    return document.text == commit.text(commit.recipe)


def migrated(folder: Path, commit: Commit) -> bool:
    """The bot takes the migration from a clone of the pinning that can be some weeks old."""
    (path,) = [path for path, kind in commit.paths.items() if path.startswith(MIGRATIONS) and kind == "A"]
    pinning, text = commit.repository.parent.parent / PINNING / "repo", commit.text(path)
    pinned = f"recipe/migrations/{Path(path).name}"
    at = git(commit.repository, "show", "-s", "--format=%ct", commit.name).decode().strip()
    log = git(pinning, "log", "--first-parent", "--format=%H", f"--before={at}", "-3", "--", pinned).decode().split()
    versions = [Commit(pinning, name, {}).text(pinned) for name in log]
    migration = folder / Path(path).name
    migration.write_text(text if text in versions else versions[0])
    draft = add_migration(draft_of(folder / "feedstock", commit, commit.recipe), migration.stem, migration)
    return text_in(draft, commit.recipe) == commit.text(commit.recipe) and text_in(draft, path) == text


def crossed(folder: Path, commit: Commit) -> bool:
    draft = draft_of(folder, commit, FORGE)
    before, after = (yaml.safe_load(commit.text(FORGE, before=old)) or {} for old in (True, False))
    for key in ("provider", "build_platform"):
        for platform in (after.get(key) or {}).keys() - (before.get(key) or {}).keys():
            draft = add_platform(draft, platform, native=key == "provider")
    return text_in(draft, FORGE) == commit.text(FORGE)


def raises_alone(commit: Commit) -> bool:
    """Whether the commit changes no lines of the recipe but build numbers."""
    before, after = (commit.text(commit.recipe, before=old).splitlines() for old in (True, False))
    return all(_BUILD.search(line) for line in difflib.ndiff(before, after) if line[0] in "+-")


def keeps_settings(commit: Commit) -> bool:
    """Whether the lines of conda-forge.yml stay, and get none of the settings of former years."""
    before, after = (commit.text(FORGE, before=old).splitlines() for old in (True, False))
    lines = list(difflib.ndiff(before, after))
    return not any(line[0] == "-" or (line[0] == "+" and "test_on_native_only" in line) for line in lines)


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


MADE = {
    "pinning open": opened,
    "pinning close": closed,
    "setting": settled,
    "version": versioned,
    "migration add": migrated,
    "platform add": crossed,
}
#: What a commit must change for its kind.
_OF_KIND: dict[str, Callable[[Commit], bool]] = {
    **dict.fromkeys(("setting", "platform add"), lambda commit: FORGE in commit.paths),
    "version": lambda commit: bool(commit.recipe),
    "migration add": lambda commit: bool(commit.recipe) and _migrations_of(commit) == ["A"],
}
#: Whether a commit does no more than its kind says.
_ALONE: dict[str, Callable[[Commit], bool]] = {
    "version": lambda commit: edit_versions.kind_of(commit) == "bump",
    "migration add": raises_alone,
    "platform add": keeps_settings,
}
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
    parser.add_argument("--show", action="store_true", help="name the commits that are not equal")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    found: dict[str, list[Commit]] = {kind: [] for kind in (*MADE, *WORDS)}
    for repository in sorted(given.mirror.glob("conda-forge+*-feedstock/repo")):
        for title, commit in commits(repository):
            counts[kind := kind_of(title)] += 1
            if kind in MADE and _OF_KIND.get(kind, bool)(commit):
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
                result = "equal" if is_equal else "different"
            except (FeedstockError, ValueError, StopIteration, IndexError, yaml.YAMLError) as error:
                result = type(error).__name__
            more = "" if _ALONE.get(kind, bool)(commit) else ", and the commit does more"
            results[result + more] += 1
            if given.show and result != "equal":
                print(f"{commit.feedstock} {commit.name[:9]} {kind}: {result}{more}", flush=True)
        print(kind, dict(results.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
