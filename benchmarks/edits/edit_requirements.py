"""Requirements that maintainers added, dropped or pinned, by the edit `requirement`: the same lines?

    python -m benchmarks.edits.edit_requirements MIRROR [--most 40] [--each 2] [--seed 1]

Counted are commits of the main line that change, among all requirements of a recipe, those of one package: one new
line, lines that go, or lines that get another constraint. --most are chosen at random, up to --each of a feedstock.

The edit starts from the recipe of the commit with these lines, and no others, as before; it gets the section, the
output and the condition where the package is not changed everywhere. Comments of the maintainer on the line, which
nobody can know, and columns are left out of the comparison; selectors are not. A line in another place of its list
counts apart.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.edits.histories import Commit, blocks, feedstocks, main_line, sides
from feedstock_tools.edit.requirements import (
    SECTIONS,
    Where,
    add_requirement,
    drop_requirement,
    name_of,
    output_name,
    outputs_of,
    pin_requirement,
)
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import Document, Part, selector_in

_COMMENT = re.compile(r"\s+#.*$")


@dataclass(frozen=True)
class Item:
    """A requirement: of an output ('' for the recipe), in a section, under a selector or condition."""

    output: str
    section: str
    text: str
    condition: str


@dataclass(frozen=True)
class Change:
    """What a commit did to the requirements of one package."""

    commit: Commit
    kind: str
    removed: tuple[Item, ...]
    added: tuple[Item, ...]
    everywhere: bool


def requirements(document: Document) -> list[Item]:
    """All requirements of a recipe."""
    if document.root is None:
        return []
    owners = [("", document.root), *((output_name(each), each) for each in outputs_of(document))]
    return [
        item
        for name, owner in owners
        for entry in owner.entries
        if entry.key == "requirements"
        for section in entry.value.entries
        if section.key in SECTIONS
        for item in items(document, name, section.key, section.value, "")
    ]


def items(document: Document, output: str, section: str, part: Part, condition: str) -> Iterator[Item]:
    """The requirements of a list, those in branches with their condition."""
    for item in part.items if part.kind == "sequence" else (part,):
        if item.kind == "scalar":
            yield Item(output, section, item.text, condition or document.selector_of(item))
        members = item.members
        for key in ("then", "else") if "if" in members else ():
            if key in members:
                test = members["if"].text
                yield from items(document, output, section, members[key], test if key == "then" else f"not {test}")


def change_of(commit: Commit) -> Change | None:
    """The change of one package's requirements; None if there is none, or more."""
    try:
        old, new = (requirements(Document(Path(commit.recipe), text)) for text in sides(commit, commit.recipe))
    except FeedstockError:
        return None
    removed, added = tuple((Counter(old) - Counter(new)).elements()), tuple((Counter(new) - Counter(old)).elements())
    names = {name_of(item.text) for item in (*removed, *added)}
    if len(names) != 1 or any("{{" in item.text for item in (*removed, *added)):
        return None
    everywhere = sorted(removed, key=repr) == sorted((i for i in old if name_of(i.text) in names), key=repr)
    if not removed and len(added) == 1:
        return Change(commit, "add", removed, added, everywhere=False)
    if removed and not added and (everywhere or len(removed) == 1):
        return Change(commit, "drop", removed, added, everywhere)
    places = [sorted((item.output, item.section, item.condition) for item in each) for each in (removed, added)]
    if places[0] == places[1] and len({item.text for item in added}) == 1 and (everywhere or len(removed) == 1):
        return Change(commit, "pin", removed, added, everywhere)
    return None


def start(change: Change) -> Document | None:
    """The recipe of the commit with the requirements as before; None if its lines hold other changes too."""
    texts = "|".join(re.escape(item.text) for item in (*change.removed, *change.added))
    about = re.compile(rf"^\s*(?:- |then: )*[\"']?(?:{texts})[\"']?\s*(?:#|$)")
    before, after = sides(change.commit, change.commit.recipe)
    text: list[str] = []
    for block in blocks(before, after):
        if block.same or not any(about.search(line) for line in block.lines):
            text += block.after
        elif len(block.before) == len(block.after):
            text += block.before
        else:
            others = [line for line in block.after if not about.search(line)]
            text += [line for line in block.before if about.search(line)] + others
    document = Document(Path(change.commit.recipe), "".join(text))
    old_lines, new_lines = (Counter(each.splitlines()) for each in (document.text, after))
    sizes = (old_lines - new_lines).total(), (new_lines - old_lines).total()
    if sizes != (len(change.removed), len(change.added)):
        return None
    try:
        old = requirements(Document(document.path, before))
        return document if Counter(requirements(document)) == Counter(old) else None
    except FeedstockError:
        return None


def edited(change: Change, document: Document) -> Document:
    """The recipe with the change made by the edit."""
    (first, *_) = (*change.removed, *change.added)
    where = Where() if change.everywhere else Where(first.section, first.output or None, first.condition or None)
    if change.kind == "drop":
        return drop_requirement(document, name_of(first.text), where)
    if change.kind == "add":
        return add_requirement(document, first.text, where)
    return pin_requirement(document, change.added[0].text, where)


def plain(text: str) -> list[str]:
    """The lines of a recipe without comments, but for their selectors."""
    lines = []
    for line in text.splitlines():
        comment = _COMMENT.search(line)
        selector = selector_in(comment[0]) if comment else ""
        lines.append(" ".join(_COMMENT.sub("", line).split()) + (f"  [{selector}]" if selector else ""))
    return lines


def compared(given: Document, change: Change) -> str:
    """'equal', 'equal in another place', or what differs."""
    expected = change.commit.text(change.commit.recipe)
    if given.text == expected:
        return "equal byte for byte"
    ours, theirs = plain(given.text), plain(expected)
    if ours == theirs:
        return "equal but for a comment or its column"
    if sorted(ours) == sorted(theirs):
        return "equal in another place of the list"
    missing = [line.strip() for line in (Counter(theirs) - Counter(ours)).elements()]
    more = [line.strip() for line in (Counter(ours) - Counter(theirs)).elements()]
    return f"other lines: {more[:2]} for {missing[:2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--most", type=int, default=40, help="commits in all")
    parser.add_argument("--each", type=int, default=2, help="commits of each feedstock")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    commits = [commit for repository in feedstocks(given.mirror) for commit in main_line(repository) if commit.recipe]
    random.seed(given.seed)
    random.shuffle(commits)
    taken: Counter[str] = Counter()
    results: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for commit in commits:
        if taken.total() == given.most:
            break
        change = change_of(commit) if taken[commit.feedstock] < given.each else None
        document = start(change) if change else None
        if change is None or document is None:
            continue
        taken[commit.feedstock] += 1
        kinds[change.kind] += 1
        try:
            result = compared(edited(change, document), change)
        except FeedstockError as error:
            result = f"error: {str(error).splitlines()[0].rpartition(': ')[2]}"
        results[result if result.startswith("equal") else "not equal"] += 1
        if not result.startswith("equal"):
            print(f"{commit.feedstock} {commit.name[:8]} {change.kind} {(*change.added, *change.removed)[0]}: {result}")
    for title, found in (("commits:", kinds), ("results:", results)):
        print(title, dict(found.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
