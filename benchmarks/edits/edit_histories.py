"""Edits of every version of recipes and variant files in the histories of feedstocks: what comes back, and how fast.

    python -m benchmarks.edits.edit_histories MIRROR [--share 0.1] [--seed 1]

For each version of a meta.yaml, recipe.yaml, conda_build_config.yaml, variants.yaml, conda-forge.yml and migration:
each scalar is set to the text that it has, and to another text and back; three of the lists get an item and lose it
again. All must give the bytes of before. Versions that are not YAML even with their templates masked are counted apart:
nothing is edited in those. MIRROR holds bare clones as OWNER+NAME/repo.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.histories import git, options
from feedstock_tools.edit.writing import added_item, removed_items, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, TextEdit

NAMES = ("meta.yaml", "recipe.yaml", "conda_build_config.yaml", "variants.yaml", "conda-forge.yml")
#: Lists of a version that get an item, chosen at random: each is parsed twice.
LISTS = 3
PATHS = (*(f"recipe/{name}" for name in NAMES[:-1]), NAMES[-1], ".ci_support/migrations")


def versions(repository: Path) -> Iterator[tuple[Path, bytes]]:
    """Every version of the files in a repository's history."""
    log = ("log", "--all", "--raw", "--no-abbrev", "--no-renames", "--format=", "-m", "--", *PATHS)
    found: dict[str, str] = {}
    for line in git(repository, *log).decode().splitlines():
        _, mode, _, blob, _, path = line.split(None, 5)
        if mode.startswith("100") and path.endswith((*NAMES, ".yaml", ".yml")):
            found[blob] = path
    names = "".join(f"{blob}\n" for blob in found).encode()
    content = git(repository, "cat-file", "--batch", given=names)
    at = 0
    for path in found.values():
        end = content.index(b"\n", at)
        words = content[at:end].split()
        size = int(words[2]) if len(words) == 3 else -1
        if size >= 0:
            yield Path(path), content[end + 1 : end + 1 + size]
        at = end + 2 + size if size >= 0 else end + 1


def parts(part: Part) -> Iterator[Part]:
    """A part and all below it."""
    yield part
    for child in (*(entry.value for entry in part.entries), *part.items):
        yield from parts(child)


def undone(document: Document, changes: list[TextEdit]) -> Document:
    """A document after changes and their inverse, found from where the changed text must be."""
    changed = document.changed(changes)
    back, shift = [], 0
    for change in sorted(changes):
        start = change.start + shift
        back.append(TextEdit(start, start + len(change.text), document.text[change.start : change.end]))
        shift += len(change.text) - (change.end - change.start)
    return changed.changed(back)


def mistakes(document: Document, root: Part, counts: Counter[str]) -> Iterator[str]:
    """What does not come back, as sentences."""
    all_parts = list(parts(root))
    lists = [part for part in all_parts if part.kind == "sequence" and part.items]
    chosen = random.sample(lists, min(LISTS, len(lists)))
    for part in all_parts:
        line = document.line_of(part.start)
        if part.kind == "scalar" and part.source and not part.is_block_text:
            counts["scalars"] += 1
            if replaced(document, part, part.text):
                yield f"{line}: setting its own text changes '{part.source[:40]}'"
            if undone(document, replaced(document, part, "another text")).text != document.text:
                yield f"{line}: another text and back"
        if part in chosen:
            counts["lists"] += 1
            try:
                longer = document.changed(added_item(document, part, "zz-added"))
                after = parts(longer.root) if longer.root else ()
                found = next((each for each in after if each.kind == "sequence" and each.start == part.start), None)
                item = next((item for item in found.items if item.text == "zz-added"), None) if found else None
                if found is None or item is None:
                    yield f"{line}: an added item is not found"
                elif longer.changed(removed_items(longer, found, [item])).text != document.text:
                    yield f"{line}: an added item does not go"
            except InputError:
                counts["lists that cannot grow"] += 1


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the versions, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    counts: Counter[str] = Counter()
    begun = time.process_time()
    for repository in sorted(given.mirror.glob("*feedstock/repo")):
        for path, content in versions(repository):
            if random.random() >= given.share:  # noqa: S311
                continue
            counts["versions"] += 1
            try:
                document = Document(path, content.decode())
                if document.root is None:
                    continue
            except (UnicodeDecodeError, InputError):
                counts["not YAML"] += 1
                continue
            wrong = list(mistakes(document, document.root, counts))
            counts["wrong"] += bool(wrong)
            for text in wrong[:3]:
                print(f"{repository.parent.name} {path}:{text}")
    print(dict(counts), f"{time.process_time() - begun:.1f} s of processor time")
    return counts["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
