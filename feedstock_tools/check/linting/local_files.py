"""Files that a recipe takes from its folder or from local sources, and that are not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from feedstock_tools.check.findings import Weight
from feedstock_tools.check.linting.selectors import may_hold
from feedstock_tools.check.linting.subject import LintFinding, Subject
from feedstock_tools.reading import is_below
from feedstock_tools.recipe.written.document import Document, Part
from feedstock_tools.recipe.written.variables import expand, names_behind, read_variables
from feedstock_tools.wording import nearest

_Paths = Mapping[tuple[str, ...], str]
#: The keys whose values are paths, without the list items above them, and what each is: those of a recipe or output.
_PATHS: _Paths = {
    ("source", "path"): "source",
    ("source", "patches"): "patch",
    ("about", "license_file"): "license file",
}
_PATHS_V0: _Paths = {
    ("outputs", "script"): "script",
    ("outputs", "test", "script"): "script",
    ("test", "files"): "test file",
}
_PATHS_V1: _Paths = {
    ("build", "script"): "command",
    ("build", "script", "file"): "script",
    ("tests", "script"): "command",
    ("tests", "script", "file"): "script",
    ("tests", "files", "recipe"): "test file",
}
#: What a recipe.yaml's command is a script of, rather than a program.
_SCRIPT = re.compile(r"[\w./-]+\.(?:sh|bat|cmd|ps1|py|nu|R|pl|rb|js)")
_RECIPE_FOLDER = re.compile(r"""\$?\{\{\s*(?:environ(?:\[['"]|\.get\(['"]))?RECIPE_DIR(?:['"][\])])?\s*\}\}/""")
_GLOB = re.compile(r"[*?\[]")
#: Files of a folder that are compared with a name.
_MOST_FILES = 2_000
_Conditions = tuple[str, ...]


class _Named(NamedTuple):
    """A path as it is written: what it is, and the conditions under which it counts."""

    kind: str
    part: Part
    conditions: _Conditions


def missing_files(subject: Subject) -> Iterator[LintFinding]:
    """Local sources, patches, scripts, test files and license files that do not exist, with the nearest that does.

    What a selector rules out in all jobs, what a template leaves open, and what leads out of the feedstock is not
    claimed, nor is a license file that a downloaded source may hold, or a script may write. Both builders pass over
    test files that are missing, and some file systems over the case of names: those are remarks.
    """
    recipe = subject.recipe
    if recipe.root is None:
        return
    named = [each for each in _named(recipe) if _counts(each, subject)]
    folder = subject.files.recipe_path.parent
    sources = _local_sources(subject, named)
    for each in named:
        text = _path(recipe, each.part.text)
        places = [folder] if each.kind != "license file" or _RECIPE_FOLDER.match(each.part.text) else sources
        if not text or places is None or Path(text).is_absolute():
            continue
        inside = all(is_below(place / text, subject.files.folder) for place in places)
        if not inside or any(_exists(place, text) for place in places):
            continue
        if each.kind == "license file" and _is_named_elsewhere(subject, Path(text).name, named):
            continue
        names = [name for place in places for name in _names(place)]
        same = [name for name in names if name.lower() == text.lower()]
        near = nearest(text, same or names, "", cutoff=0.0 if same else 0.6)
        message = f"there is no {each.kind.replace('command', 'script')} '{text}'"
        weight: Weight = "remark" if same or each.kind == "test file" else "mistake"
        at = each.part.start
        yield subject.finding(at, "missing-file", f"{message}. {near}" if near else message, weight=weight)


def _named(document: Document) -> Iterator[_Named]:
    """The paths in a recipe."""
    paths = {**_PATHS, **(_PATHS_V0 if document.has_templates else _PATHS_V1)}
    pending: list[tuple[Part, tuple[str, ...], _Conditions]] = [(document.root, (), ())] if document.root else []
    while pending:
        part, keys, conditions = pending.pop()
        plain = tuple(key for key in keys if key != "*")
        kind = paths.get(plain) or (paths.get(plain[1:], "") if plain[:1] == ("outputs",) else "")
        if part.kind == "scalar" and kind and not (kind in {"script", "command"} and keys[-1] == "*"):
            own = document.selector_of(part)
            yield _Named(kind, part, (*conditions, own) if own else conditions)
        condition = part.members["if"].text if "if" in part.members else ""
        for entry in part.entries:
            own = document.selector_of(entry)
            if condition and entry.key in {"then", "else"}:
                own = condition if entry.key == "then" else f"not ({condition})"
                pending.append((entry.value, keys, (*conditions, own)))
            else:
                pending.append((entry.value, (*keys, entry.key), (*conditions, own) if own else conditions))
        pending += [(item, (*keys, "*"), conditions) for item in part.items]


def _counts(named: _Named, subject: Subject) -> bool:
    if subject.recipe.is_in_block(named.part.start) or (
        named.kind == "command" and not _SCRIPT.fullmatch(named.part.text)
    ):
        return False
    return all(may_hold(condition, subject) for condition in named.conditions)


def _path(recipe: Document, text: str) -> str:
    """A path with the recipe's own variables filled in; '' if others are in it."""
    text = _RECIPE_FOLDER.sub("", text).replace("\\", "/")  # as on Windows
    known = {variable.name for variable in read_variables(recipe)} if "{{" in text else set()
    return (expand(recipe, text, {}) or "") if names_behind(text, read_variables(recipe)) <= known else ""


def _local_sources(subject: Subject, named: list[_Named]) -> list[Path] | None:
    """The folders that hold license files: the recipe's, and those of its sources if all are folders that exist."""
    folder = subject.files.recipe_path.parent
    of_outputs = [each for output in subject.recipe.entries("outputs") for each in output.value.items]
    owners = [subject.recipe.root, *of_outputs]
    written = [entry.value for owner in owners if owner is not None for entry in owner.entries if entry.key == "source"]
    count = sum(len(part.items) or 1 for part in written if part.items or part.entries)
    paths = [folder / _path(subject.recipe, each.part.text) for each in named if each.kind == "source"]
    if len(paths) != count or not all(is_below(path, subject.files.folder) and path.is_dir() for path in paths):
        return None
    return [folder, *paths]


def _exists(folder: Path, text: str) -> bool:
    try:
        if _GLOB.search(text):
            return next(folder.glob(text.rstrip("/")), None) is not None
        return any(os.path.lexists(folder / f"{text}{end}") for end in ("", ".sh", ".bat"))
    except (ValueError, NotImplementedError):  # not a pattern
        return True


def _is_named_elsewhere(subject: Subject, name: str, named: list[_Named]) -> bool:
    """Whether the recipe or a script names a file besides as a license file, as what writes it does."""
    own = sum(name in each.part.text for each in named if each.kind == "license file")
    return subject.texts is None or sum(text.count(name) for text in subject.texts) > own


def _names(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(islice(found, _MOST_FILES))
