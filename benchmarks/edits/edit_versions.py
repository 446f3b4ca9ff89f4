"""New versions that maintainers released, made again by the edit `version`, and rerendered.

    python -m benchmarks.edits.edit_versions MIRROR [--most 200] [--each 6] [--seed 1]

A bump is a commit of the main line that changes nothing of the recipe's folder and conda-forge.yml but lines of the
recipe, one for one, in which only hashes and words that begin with a digit differ; no requirement and no skip is among
them, and one has to do with the version. Of all these, --most are chosen at random, up to --each of a feedstock; the
commits that change a version and more are counted by what else they change; --any takes them all.

The recipe before the commit is edited to the version of the recipe after it, with the hashes of the sources that the
edit asks for; with --of the output whose version changed if several have one, and with --set other variables that the
addresses depend on and that the commit changed. Version, all hashes and build numbers must be those of the commit. Then
the parent's files with the edited recipe are rerendered, and so is the commit, both with conda-smithy's rules and the
pinning of the last rerender in the history of the commit: names and bytes of the configurations must be equal, and
equal to those in the commit if rerendering the commit gives these. MIRROR: see histories.py.
"""

import difflib
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.histories import MIGRATIONS, Commit, Pinnings, feedstocks, lay_out, main_line, options
from feedstock_tools.edit.sources import changed_sources, sources_of
from feedstock_tools.edit.version import _base, _groups, left_behind, move_to, set_version, version_of
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.recipe.written.owners import outputs_of
from feedstock_tools.recipe.written.variables import Variable, names_behind, read_variables
from feedstock_tools.rerender.rerendering import rerender

_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_HASH = re.compile(r"\b[0-9a-f]{32,128}\b")
_NUMBER = re.compile(r"(?<![A-Za-z0-9])[0-9][0-9A-Za-z.+!_-]*|[0-9]+")
_OF_VERSION = re.compile(r"version|major|minor|patch|\{%-?\s*set\b", re.IGNORECASE)
_NOT_OF_VERSION = re.compile(r"number|set build|sha256|skip|python_min", re.IGNORECASE)
_REQUIREMENT = re.compile(r"^\s*- (?!.*(?:url|sha256|https?:))")


def kind_of(commit: Commit) -> str:
    """'bump', '' for a commit that is not about a version, or what else it changes."""
    before, after = (commit.text(commit.recipe, before=old).splitlines() for old in (True, False))
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    lines = [(before[a:b], after[c:d]) for tag, a, b, c, d in blocks if tag != "equal"]
    changed = [text for pair in lines for side in pair for text in side]
    if not any(is_of_version(text) for text in changed):
        return ""
    try:
        documents = [Document(Path(commit.recipe), commit.text(commit.recipe, before=old)) for old in (True, False)]
        if version_of(documents[0]) == version_of(documents[1]):
            return ""
    except FeedstockError:
        pass  # counts as a bump if only the version's lines differ, and then the edit has to say why it cannot
    if any(len(old) != len(new) for old, new in lines):
        return "lines come or go"
    if any(blank(one) != blank(other) for old, new in lines for one, other in zip(old, new, strict=True)):
        return "more than hashes and numbers"
    if any(_REQUIREMENT.match(text) or "skip" in text for text in changed):
        return "requirements, patches or skips"
    others = [path for path, kind in commit.paths.items() if not (path.startswith(MIGRATIONS) and kind == "D")]
    return "bump" if others == [commit.recipe] else "other files"


def is_of_version(line: str) -> bool:
    """Whether a line may hold a version of the recipe."""
    return bool(_OF_VERSION.search(line) and _NUMBER.search(line) and not _NOT_OF_VERSION.search(line))


def blank(line: str) -> str:
    """A line without what a bump changes."""
    return _NUMBER.sub("N", _HASH.sub("H", line))


def edited(commit: Commit, counts: Counter[str]) -> tuple[Document, str]:
    """The recipe as the edit makes it, and 'equal' or what differs from the commit."""
    path = Path(commit.recipe)
    before, after = (Document(path, commit.text(commit.recipe, before=old)) for old in (True, False))
    output = changed_output(before, after)
    chosen = chosen_variables(before, after)
    version = version_of(after, output, chosen)
    places = [source.place for source in sources_of(before)]
    new = [source.place for source in sources_of(after)]
    texts = [place.literal if isinstance(place, Variable) else place.text for place in new]
    variables = chosen | changed_variables(before, after, version, output)
    counts["replayed with --of"] += output is not None
    counts["replayed with --set"] += bool(variables)
    moved = move_to(before, version, output=output, variables=variables)
    if len(new) != len(places):
        return before, "another number of hashes"
    moved_places = [source.place for source in sources_of(moved)]
    asked = [texts[moved_places.index(source.place)] or "" for source in changed_sources(before, moved)]
    document = set_version(before, version, asked, output=output, variables=variables)
    if document.text != after.text:
        counts["texts that differ"] += 1
        counts["of which a note names a line"] += bool(left_behind(before, document, output))
    if version_of(document, output, variables) != version:
        return document, "another version"
    if _HASH.findall(_COMMENT.sub("", document.text)) != _HASH.findall(_COMMENT.sub("", after.text)):
        return document, "another hash"
    numbers = [{number for group in _groups(each) for _, number in group} for each in (document, after)]
    return document, "equal" if numbers[0] == numbers[1] else "the maintainer's build number does not start again"


def changed_output(before: Document, after: Document) -> str | None:
    """The output whose version changed, in a recipe that has several versions."""
    try:
        version_of(before)
    except FeedstockError:
        pairs = zip(outputs_of(before), outputs_of(after), strict=False)
        names = [one.name for one, _ in pairs]
        changed = [name for name in names if name and own_version(before, name) != own_version(after, name)]
        return changed[0] if changed else None
    return None


def chosen_variables(before: Document, after: Document) -> dict[str, str]:
    """The variables that changed and that versions depend on, in a recipe whose version differs by selector."""
    parts = [entry.value.text for entry in before.entries("package", "version")]
    behind = frozenset[str]().union(*(names_behind(text, read_variables(before)) for text in parts))
    pairs = zip(read_variables(before), read_variables(after), strict=False)
    changed = {new.name: new.literal or "" for old, new in pairs if new.name in behind and old.literal != new.literal}
    return changed if len(set(parts)) > 1 else {}


def own_version(document: Document, output: str) -> str:
    """The version of an output; '' if it has none of its own."""
    try:
        return version_of(document, output)
    except FeedstockError:
        return ""


def changed_variables(before: Document, after: Document, version: str, output: str | None) -> dict[str, str]:
    """Variables that the addresses of sources depend on and that the commit changed, but for those of the version."""
    texts = " ".join(url for source in sources_of(before) for url in source.urls)
    behind = names_behind(texts, read_variables(before)) - _base(before, version, output, {}).values.keys()
    old, new = ({each.name: each.literal for each in read_variables(one)} for one in (before, after))
    changed = {name: new.get(name) for name, text in old.items() if name in behind and text != new.get(name)}
    return {name: text for name, text in changed.items() if text and not _HASH.fullmatch(text)}


def message(error: FeedstockError) -> str:
    """The first line of an error without its place and what follows from the recipe."""
    return str(error).splitlines()[0].rpartition(": ")[2].split(" {{")[0].split(" ${{")[0]


def replay(commit: Commit, pinnings: Pinnings, counts: Counter[str], *, rerenders: bool = True) -> str:
    """Make a bump again and rerender it: 'equal', or what differs."""
    try:
        document, result = edited(commit, counts)
    except FeedstockError as error:
        return f"error: {message(error)}"
    if not rerenders:
        return result
    counts["edits equal"] += result == "equal"
    day = pinnings.day_of(commit)
    if day is None:
        return result
    counts["recipes equal byte for byte"] += document.text == commit.text(commit.recipe)
    with tempfile.TemporaryDirectory() as place:
        ours, theirs = Path(place, "ours"), Path(place, "theirs")
        lay_out(commit.repository, commit.parent, ours)
        lay_out(commit.repository, commit.name, theirs)
        (ours / document.path).write_bytes(document.text.encode())
        try:
            expected = rerender(theirs, pinning=day.pinning, rules=day.rules).files
        except FeedstockError as error:
            return f"{result}; the commit does not rerender: {message(error)}"
        given = rerender(ours, pinning=day.pinning, rules=day.rules).files
        recorded = {path.name: path.read_bytes() for path in (theirs / ".ci_support").glob("*.yaml")}
        same, own = given == expected, expected == recorded
        counts["configurations equal to those of rerendering the commit"] += same
        counts["commits whose own configurations rerendering gives"] += own
        counts["and the edit rerenders to these"] += own and given == recorded
        return result if same else f"{result}; other configurations"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--most", type=int, default=200, help="bumps in all")
    parser.add_argument("--each", type=int, default=6, help="bumps of each feedstock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any", action="store_true", help="any commit that changes the version, without rerenders")
    given = parser.parse_args()
    commits = [commit for repository in feedstocks(given.mirror) for commit in main_line(repository) if commit.recipe]
    random.seed(given.seed)
    random.shuffle(commits)
    kinds: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    results: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as cache:
        pinnings = Pinnings(given.mirror, Path(cache))
        for commit in commits:
            if taken.total() == given.most:
                break
            kind = kind_of(commit)
            if given.any and kind:
                kinds[kind] += 1
                taken[commit.feedstock] += 1
                results[replay(commit, pinnings, counts, rerenders=False)] += 1
                continue
            if kind == "bump" and taken[commit.feedstock] == given.each:
                kind = "bump of a feedstock with enough of them"
            elif kind == "bump" and pinnings.day_of(commit) is None:
                kind = "bump without a recorded rerender before"
            kinds[kind or "no new version"] += 1
            if kind == "bump":
                taken[commit.feedstock] += 1
                results[result := replay(commit, pinnings, counts)] += 1
                if result != "equal":
                    print(f"{commit.feedstock} {commit.name[:8]}: {result}", flush=True)
    for title, found in (("commits:", kinds), ("bumps:", results), ("of these:", counts)):
        print(title, dict(found.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
