"""Build scripts beside a recipe: lines that name a version, branches for it, and scripts that fail for a new value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from feedstock_tools.edit.draft import Draft
from feedstock_tools.errors import InputError
from feedstock_tools.gpu_code.build_scripts import Assigned, run, tree_of
from feedstock_tools.recipe.written.document import Document, TextEdit, read_document

_COMMENT = re.compile(r"(?i)\s*(#|rem\b|::)")
#: The scripts that builds run without being named in the recipe.
_RUN = frozenset({"build.sh", "bld.bat", "build.bat"})


def scripts_of(draft: Draft) -> Iterator[Document]:
    """The scripts in the recipe's folder, as edited so far."""
    folder = draft.recipe_path.parent
    for path in sorted(path for end in ("sh", "bat") for path in folder.glob(f"*.{end}")):
        try:
            yield draft.document(path) or read_document(path, within=folder)
        except InputError:
            continue  # a link that leads out, or not text


def lines_with(draft: Draft, pattern: re.Pattern[str], title: str) -> list[str]:
    """The lines of scripts, but for comments, that a pattern finds with a `version` of what the title says."""
    return [
        f"{script.path.name}:{number} mentions {title} {match['version']}: {line.strip()}"
        for script in scripts_of(draft)
        for number, line in enumerate(script.text.splitlines(), 1)
        if not _COMMENT.match(line) and (match := pattern.search(line))
    ]


def lines_naming(draft: Draft, version: str) -> list[str]:
    """The lines of scripts that have the recipe's version written out; none for a version without a dot."""
    pattern = re.compile(rf"(?<![\w.])(?P<version>{re.escape(version)})(?!\w|\.\d)")
    return lines_with(draft, pattern, "version") if "." in version else []


def failing(draft: Draft, new: Mapping[str, str], old: Iterable[Mapping[str, str]]) -> list[str]:
    """The scripts that fail in each build with new values of variables, `target_platform` among them, and not in each
    with one of the old values."""
    subdir = new["target_platform"]
    what = " ".join(f" for {name} {value}" for name, value in new.items() if name != "target_platform")
    return [
        f"{script.path.name} fails on {subdir}{what}: give it a branch for that"
        for script in scripts_of(draft)
        if script.path.name in _RUN or script.path.name in draft.recipe.text
        if subdir.startswith("win-") == _is_batch(script)
        if not _ends(script, new) and any(_ends(script, each) for each in old)
    ]


def without_branches(draft: Draft, name: str, version: str, left: Iterable[str]) -> Draft:
    """The draft whose scripts have no branch for one value of a variable, where the values that are left set what they
    did."""
    left = list(left)
    for script in scripts_of(draft):
        shorter = _without(script, name, version)
        if shorter != script and all(_ends(script, {name: each}) == _ends(shorter, {name: each}) for each in left):
            remark = f"{script.path.name} has no branch for {name} {version} any more"
            draft = draft.with_script(shorter).remarked(remark)
    return draft


def _is_batch(script: Document) -> bool:
    return script.path.suffix == ".bat"


def _ends(script: Document, values: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """What variables may be where a script ends without a failure; empty if it always fails."""
    given = {name: frozenset({Assigned(value, 0)}) for name, value in values.items()}
    after = run(tree_of(script.text, is_batch=_is_batch(script)), given)
    return {name: frozenset(each.written for each in found) for name, found in after.items() if "@" not in name}


@dataclass(frozen=True, slots=True)
class _Language:
    """How a language of scripts writes branches: a test of a variable, the word before one that is not the first, and
    what opens, ends and goes on with nested ones."""

    test: str
    later: str
    opens: re.Pattern[str]
    ends: re.Pattern[str]
    boundary: re.Pattern[str]


_SHELL = _Language(
    r"if\s+\[\[?\s+(?P<q>['\"]?)\$(?:{name}|\{{{name}\}})(?P=q)\s+==?\s+(?P<r>['\"]?){version}(?P=r)\s+\]\]?\s*;\s*then",
    "el",
    re.compile(r"if\b(?!.*;\s*fi$)"),
    re.compile(r"fi\b"),
    re.compile(r"(?:elif|else|fi)\b"),
)
_BATCH = _Language(
    r"if\s+\"%{name}%\"\s*==\s*\"{version}\"\s*\(",
    ") else ",
    re.compile(r".*\($"),
    re.compile(r"\)"),
    re.compile(r"\)"),
)


def _without(script: Document, name: str, version: str) -> Document:
    """A script without the branches for one value; those with an `else` alone behind them stay."""
    language = _BATCH if _is_batch(script) else _SHELL
    test = language.test.format(name=name, version=re.escape(version))
    branch = re.compile(rf"(?P<later>{re.escape(language.later)})?{test}", re.IGNORECASE)
    lines = script.text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits = []
    for at, line in enumerate(lines):
        match = branch.fullmatch(line.strip())
        end = None if match is None else _end(lines, at + 1, language)
        if match is None or end is None:
            continue
        after = lines[end].strip()
        goes_on = after.lower().startswith(f"{language.later}if")
        if match["later"] or goes_on:
            edits.append(TextEdit(starts[at], starts[end], ""))
            if not match["later"]:
                start = starts[end] + lines[end].lower().index(f"{language.later}if")
                edits.append(TextEdit(start, start + len(language.later), ""))
        elif language.ends.fullmatch(after):
            edits.append(TextEdit(starts[at], starts[end + 1], ""))
    return script.changed(edits)


def _end(lines: list[str], at: int, language: _Language) -> int | None:
    """The line that ends a branch whose body begins at a line; None without one, or with a here-document in it."""
    depth = 0
    for number, line in enumerate(lines[at:], at):
        text = line.strip()
        if "<<" in text:
            return None
        if not depth and language.boundary.match(text):
            return number
        depth += bool(language.opens.match(text)) - bool(language.ends.match(text))
    return None
