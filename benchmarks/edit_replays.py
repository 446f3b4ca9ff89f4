"""Edits that maintainers made, made again: new versions, and migrations of CUDA and Python that came and went.

    python benchmarks/edit_replays.py MIRROR [--each 4] [--migrations 40] [--seed 1]

Bumps: commits of each feedstock's main line that changed the version, chosen at random. The recipe before the commit is
edited to the new version with the hashes of the recipe after it; version, hashes and build numbers must be those of
after. A hash that differs counts only if the source's address follows from the version.
Migrations: commits that added or removed a file such as python313.yaml or cuda129.yaml; the edit, with the pinning of
that day, must add the same bytes, or remove the file. MIRROR holds bare clones as OWNER+NAME/repo.
"""

import argparse
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from feedstock_tools.edit.build_number import _groups
from feedstock_tools.edit.document import Document
from feedstock_tools.edit.draft import open_draft
from feedstock_tools.edit.variables import expand
from feedstock_tools.edit.variant_lists import CUDA, PYTHON, add_version, drop_version
from feedstock_tools.edit.version import _sources, set_version, sources_that_change, version_of
from feedstock_tools.errors import FeedstockError, InputError

RECIPES = ("recipe/meta.yaml", "recipe/recipe.yaml")
MIGRATION = re.compile(r"migrations/(python|cuda)_?\d+x?\.yaml$")


def git(repository: Path, *words: str) -> bytes:
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, capture_output=True, check=True).stdout


def recipe_changes(repository: Path, name: str) -> Iterator[tuple[str, Document, Document]]:
    """Each commit of the main line that changed a recipe, with the recipe before and after."""
    log = git(repository, "log", "--first-parent", "-m", "--raw", "--no-abbrev", "--format=C %H", "--", name).decode()
    commit = ""
    for line in log.splitlines():
        if line.startswith("C "):
            commit = line[2:]
        elif line.startswith(":") and line.split()[4] == "M":
            before, after = (git(repository, "cat-file", "blob", blob) for blob in line.split()[2:4])
            try:
                yield commit, Document(Path(name), before.decode()), Document(Path(name), after.decode())
            except UnicodeDecodeError:
                continue


def bumps(repository: Path, most: int) -> Iterator[tuple[str, Document, Document, str]]:
    """Commits that changed the version, chosen at random, with the new version."""
    changes = [change for name in RECIPES for change in recipe_changes(repository, name)]
    random.shuffle(changes)
    found = 0
    for commit, before, after in changes:
        try:
            if found < most and version_of(before) != version_of(after):
                found += 1
                yield commit, before, after, version_of(after)
        except InputError:
            continue


def replayed(before: Document, after: Document, version: str) -> str:
    """What the edit makes of a bump: 'equal', or what differs."""
    old, new = list(_sources(before)), list(_sources(after))
    if len(old) != len(new):
        return "another number of sources"
    places = {hash_.start: at for at, (_, hash_) in enumerate(old)}
    changing = [places[source.hash_.start] for source in sources_that_change(before, version)]

    def hashes(document: Document) -> list[str]:
        found = list(_sources(document))
        texts = [expand(document, hash_.text, {}, document.selector_of(url)) for url, hash_ in found]
        return [texts[at] or "" for at in changing]

    edited = set_version(before, version, hashes(after))
    if version_of(edited) != version:
        return "another version"
    if hashes(edited) != hashes(after):
        return "another hash"
    numbers = [{number for group in _groups(each) for _, number in group} for each in (edited, after)]
    return "equal" if numbers[0] == numbers[1] else "the maintainer's build number is not 0"


def migrations(mirror: Path) -> Iterator[tuple[str, Path, str, str, str]]:
    """Commits that added (A) or removed (D) a migration: feedstock, repository, commit, kind, path."""
    for repository in sorted(mirror.glob("*-feedstock/repo")):
        words = ["log", "--no-merges", "--name-status", "--no-renames", "--format=C %H", "--diff-filter=AD"]
        commit = ""
        for line in git(repository, *words, "--", ".ci_support/migrations").decode().splitlines():
            if line.startswith("C "):
                commit = line[2:]
            elif line[:1] in {"A", "D"} and MIGRATION.search(line) and "pinning" not in repository.parent.name:
                yield repository.parent.name, repository, commit, line[0], line.split("\t")[1]


def unpacked(repository: Path, revision: str, folder: Path, *paths: str) -> Path:
    with tarfile.open(fileobj=BytesIO(git(repository, "archive", revision, *paths))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def migrated(repository: Path, pinning: Path, commit: str, kind: str, path: str) -> str:
    """What the edit makes of a migration's coming or going."""
    text = git(repository, "show", f"{commit if kind == 'A' else f'{commit}~'}:{path}").decode()
    choice = PYTHON if "/python" in path else CUDA
    versions = [
        match[0]
        for entry in Document(Path(path), text).entries(choice.key)
        for item in entry.value.items
        if (match := re.match(r"\d+\.\d+", item.text))
    ]
    if not versions:
        return "names no version"
    date = git(repository, "show", "--no-patch", "--format=%cI", commit).decode().strip()
    day = git(pinning, "rev-list", "-1", f"--before={date}", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as place:
        draft = open_draft(unpacked(repository, f"{commit}~", Path(place) / "feedstock"))
        folder = unpacked(pinning, day, Path(place) / "pinning", "recipe/migrations") / "recipe/migrations"
        if kind == "A":
            edited = add_version(draft, choice, versions[-1], folder).file(path)
            return "equal" if edited and edited.text == text else "another file" if edited is None else "another text"
        return "equal" if drop_version(draft, choice, versions[-1]).file(path) is None else "another file"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--each", type=int, default=4, help="bumps of each feedstock")
    parser.add_argument("--migrations", type=int, default=40, help="migrations in all, two of a kind of a feedstock")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    counts: Counter[str] = Counter()
    for repository in sorted(given.mirror.glob("*-feedstock/repo")):
        for commit, before, after, version in bumps(repository, given.each):
            try:
                result = replayed(before, after, version)
            except InputError as error:
                result = error.mistakes[0].message.split(" {{")[0].split(" ${{")[0]
            counts[result] += 1
            if result != "equal":
                print(f"{repository.parent.name} {commit[:8]} {version}: {result}")
    print("bumps:", dict(counts))
    counts.clear()
    taken: Counter[tuple[str, str]] = Counter()
    pinning = given.mirror / "conda-forge+conda-forge-pinning-feedstock/repo"
    found = list(migrations(given.mirror))
    random.shuffle(found)
    for name, repository, commit, kind, path in found:
        if taken[name, kind] == 2 or taken.total() == given.migrations:
            continue
        taken[name, kind] += 1
        try:
            result = migrated(repository, pinning, commit, kind, path)
        except (FeedstockError, subprocess.CalledProcessError) as error:
            result = str(error).splitlines()[0].rsplit(": ", 1)[-1]
        counts[result] += 1
        if result != "equal":
            print(f"{name} {commit[:8]} {kind} {path}: {result}")
    print("migrations:", dict(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
