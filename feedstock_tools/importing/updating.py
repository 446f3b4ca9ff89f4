"""A change that somebody made to generated files, taken into the spec that they were generated from.

The recipe as the spec generates it and the recipe as it is now are both imported. What differs between the two imports
is changed in the spec, entry by entry, so that all else stays as a person wrote it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import file_diff
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.generate.spec.items import Migration
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.spec.reading import STUBS, read_spec_as_written, spec_from_text, with_time_stamps
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.importing.content import migration_text
from feedstock_tools.importing.importing import contents_of
from feedstock_tools.importing.output_content import COMMENT
from feedstock_tools.importing.verification import Difference, compare, laid_out
from feedstock_tools.reading import SPEC_NAME, is_file, read_text
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.stages import stage

#: Where an entry of an import stands: keys of mappings, and names of outputs.
_Path = tuple[str, ...]
#: The characters of an entry that a message shows.
_LONGEST = 120
#: What a comparison of the packages finds: without a difference, an entry of these is only said in another way.
_GONE = Migration(timestamp="0")
_COMPARED = frozenset({"requirements", "ignore_run_exports", "run_exports", "test", "script", "string", "skip"})


@dataclass(frozen=True, slots=True)
class Updated:
    """A spec with a change of its generated files in it.

    `texts` are what it generates. `missed` are the entries that changed and have no place in the spec; `differences` is
    what the spec would make otherwise than the files that are there.
    """

    feedstock: Path
    before: str
    text: str
    texts: Mapping[PurePosixPath, str]
    missed: tuple[str, ...]
    differences: tuple[Difference, ...]

    def diff(self) -> str:
        """The change of the spec as a unified diff; empty if nothing changes."""
        return "".join(file_diff(SPEC_NAME, self.before.encode(), self.text.encode()))


def update_spec(
    feedstock: Path,
    *,
    changed: Path | None = None,
    listed: str | None = None,
    pinning: Path | None = None,
    rules: Rules | None = None,
) -> Updated:
    """The spec of a feedstock with what changed in its generated files. Nothing is written.

    Args:
        changed: a copy of the feedstock in which the files changed; default: the feedstock itself.
        listed: the text of the spec with lists that were edited in itself, which gets the change too; None: none were.
        pinning: as for `import_recipe`.
        rules: as for `import_recipe`.

    Raises:
        InputError: the spec, or a recipe that it is compared with, cannot be read.

    >>> changed = generate(Path("hello")).apply()
    >>> update_spec(Path("hello"), pinning=Path("pinning")).missed
    ()
    """
    rules = rules or Rules.newest()
    path = feedstock / SPEC_NAME
    text = read_text(path, within=feedstock)
    spec = read_spec_as_written(feedstock)
    made = _texts(spec, feedstock)
    changed = changed or feedstock
    stage("reading the recipe that the spec generates, and the one that is there")
    with temporary_folder() as folder:
        generated = laid_out(changed, "recipe", made, folder)
        before, after = contents_of((generated, changed), pinning, rules)
    before = {**before, "migrations": _migrations(spec)}
    changes = list(_changes((), before, after))
    editor = _edited(text, path, changes)
    updated = editor.text()
    texts = _texts(spec_from_text(updated, path, changed / "recipe"), changed)
    stage("comparing what the spec and the recipe make")
    found = compare(changed, texts, pinning, rules)
    differences = (*found.differences, *found.texts)
    if listed is not None:
        updated = _edited(listed, path, changes).text()
        texts = _texts(spec_from_text(updated, path, changed / "recipe"), changed)
    missed = tuple(shown for place, shown in editor.missed if differences or not _COMPARED.intersection(place))
    return Updated(feedstock, text, updated, texts, missed, differences)


def edited_spec(
    feedstock: Path,
    files: Mapping[PurePosixPath, str],
    *,
    listed: str | None = None,
    pinning: Path | None = None,
    rules: Rules | None = None,
) -> Updated:
    """As `update_spec`, for generated files with a change that is not written yet: all of them, by their paths.

    Args:
        listed: as for `update_spec`.
    """
    path = feedstock / SPEC_NAME
    before = read_text(path, within=feedstock)
    if listed is not None and files == _texts(read_spec_as_written(feedstock), feedstock):
        made = _texts(spec_from_text(listed, path, feedstock / "recipe"), feedstock)
        return Updated(feedstock, before, listed, made, (), ())
    with temporary_folder() as folder:
        changed = laid_out(feedstock, "recipe", files, folder)
        for name in read_spec_as_written(feedstock).migrations:
            if PurePosixPath(stub := STUBS / f"{name}.yaml") not in files:
                (changed / stub).unlink(missing_ok=True)
        return update_spec(feedstock, changed=changed, listed=listed, pinning=pinning, rules=rules)


def _texts(spec: Spec, feedstock: Path) -> Mapping[PurePosixPath, str]:
    """What a spec generates. Of a migration that the feedstock no longer has, nobody asks the time stamp."""
    known = {
        name: migration if migration.timestamp or is_file(feedstock / STUBS / f"{name}.yaml") else _GONE
        for name, migration in spec.migrations.items()
        if migration.verbatim is None
    }
    timed = spec.model_copy(update={"migrations": {**spec.migrations, **known}})
    return render(with_time_stamps(timed, feedstock, None))


def _migrations(spec: Spec) -> dict[str, Any]:
    """The migrations of a spec as an import has them, without those whose time stamps a person wrote."""
    return {
        name: {"verbatim": migration_text(migration.verbatim)} if migration.verbatim else {}
        for name, migration in spec.migrations.items()
        if not migration.timestamp
    }


def _plain(value: Any) -> Any:
    """An entry without its comment and reason."""
    if isinstance(value, Mapping):
        kept = {str(key): _plain(item) for key, item in value.items()}
        kept = {key: item for key, item in kept.items() if key != "why" and not key.startswith(COMMENT)}
        return kept["package"] if list(kept) == ["package"] else kept
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _changes(place: _Path, before: Any, after: Any) -> Iterator[tuple[_Path, Any, Any]]:
    """The entries that differ: the place, and the old and the new entry (None: none). Items of lists stand in lists."""
    if _key(before) == _key(after):
        return
    if place == ("migrations",):
        old, new = (
            each if isinstance(each, Mapping) else {name: {} for name in each or ()} for each in (before, after)
        )
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                yield (*place, name), old.get(name), new.get(name)
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            if not key.startswith(COMMENT) and key != "why":
                yield from _changes((*place, key), before.get(key), after.get(key))
    elif place == ("outputs",) and before and after:
        old, new = ({output["name"]: output for output in outputs} for outputs in (before, after))
        for name in dict.fromkeys((*old, *new)):
            yield from _changes((*place, name), old.get(name), new.get(name))
    elif isinstance(before or after, list) and isinstance(after or before, list):
        yield place, before or [], after or []
    else:
        yield place, before, after


def _edited(text: str, path: Path, changes: Iterable[tuple[_Path, Any, Any]]) -> _Editor:
    """A spec with entries changed."""
    editor = _Editor(text, path)
    for place, old, new in changes:
        editor.change(place, old, new)
    return editor


class _Editor:
    """A spec that is changed entry by entry; lines without a change stay as they are."""

    def __init__(self, text: str, path: Path) -> None:
        from ruamel.yaml import YAML

        self.yaml = YAML()
        self.yaml.preserve_quotes = True
        self.yaml.width = 10_000
        self.yaml.indent(mapping=2, sequence=4, offset=2)
        self.original, self.path = text, path
        self.root = self.yaml.load(text)
        self.unchanged = self._dumped()
        self.missed: list[tuple[_Path, str]] = []

    def _dumped(self) -> str:
        stream = io.StringIO()
        self.yaml.dump(self.root, stream)
        return stream.getvalue()

    def text(self) -> str:
        """The changed spec."""
        if self.unchanged == self.original:
            return self._dumped()
        original, unchanged = self.original.splitlines(True), self.unchanged.splitlines(True)
        if len(original) != len(unchanged):
            hint = "Write one entry a line, or replace it: import --force"
            raise InputError("is written in a way that an update cannot keep", path=self.path, hint=hint)
        changed, lines = self._dumped().splitlines(True), []
        for tag, start, end, new_start, new_end in SequenceMatcher(None, unchanged, changed, False).get_opcodes():
            lines += original[start:end] if tag == "equal" else changed[new_start:new_end]
        return "".join(lines)

    def change(self, place: _Path, old: Any, new: Any) -> None:
        """Change an entry, or note that the spec has no place for it."""
        if place[0] == "migrations":
            self._change_migration(place[1], new)
            return
        owner, key = self._owner(place)
        if owner is None:
            self._miss(place, old, new)
        elif isinstance(old, list) and isinstance(new, list):
            self._change_list(place, owner, key, old, new)
        elif new is None:
            if key in owner:
                del owner[key]
            else:
                self._miss(place, old, new)
        elif isinstance(owner.get(key), dict | list) and not isinstance(new, dict | list):
            self._miss(place, old, new)
        else:
            owner[key] = _like(owner.get(key), new)

    def _change_migration(self, name: str, new: Any) -> None:
        """Change a migration, in a list of names or in a mapping."""
        known = self.root.get("migrations")
        if new == {} and name in (known or ()):
            return
        if isinstance(known, list) and new:
            known = {each: {} for each in known}
        elif not known:
            known = {name: new} if new else []
        if isinstance(known, list):
            known[:] = [each for each in known if each != name] + ([name] if new is not None else [])
        elif new is None:
            known.pop(name, None)
        elif new and "verbatim" in (known.get(name) or {}):
            known[name]["verbatim"] = _like(known[name]["verbatim"], new["verbatim"])
        else:
            is_written = known is self.root.get("migrations")
            # Lines after the last entry belong to its content.
            at = len(known) - 1 if is_written and [*known.values()][-1] else len(known)
            known.insert(at, name, _like(None, new)) if is_written else known.update({name: _like(None, new)})
        self.root["migrations"] = known
        if not known:
            del self.root["migrations"]

    def _owner(self, place: _Path) -> tuple[Any, Any]:
        """The mapping that has an entry, and its key there; mappings on the way that are missing are made."""
        node = self.root
        for index, name in enumerate(place[:-1]):
            if isinstance(node, list):
                node = next((item for item in node if isinstance(item, Mapping) and item.get("name") == name), None)
            elif isinstance(node, dict):
                if node.get(name) is None:
                    if index and place[index - 1] == "outputs":
                        return None, None
                    node[name] = {}
                node = node[name]
            if node is None or isinstance(node, str):
                return None, None
        if isinstance(node, list):
            return None, None
        return node, place[-1]

    def _change_list(self, place: _Path, owner: Any, key: Any, old: Sequence[Any], new: Sequence[Any]) -> None:
        if owner.get(key) is None:
            owner[key] = []
        if isinstance(owner[key], dict) and len(owner[key]) == 1:  # one list for the one version of CUDA
            owner, key = owner[key], next(iter(owner[key]))
        if isinstance(owner[key], dict):
            self._miss(place, old, new)
            return
        if not isinstance(owner[key], list):
            owner[key] = [owner[key]]
        matcher = SequenceMatcher(None, [_key(item) for item in old], [_key(item) for item in new], False)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            if tag == "equal":
                continue
            removed, added = list(old[start:end]), list(new[new_start:new_end])
            for item, other in zip(removed, added, strict=False):
                self._replace(place, owner[key], item, other)
            for item in removed[len(added) :]:
                self._replace(place, owner[key], item, None)
            for at in range(new_start + len(removed), new_end):
                self._insert(owner[key], new[at - 1] if at else None, new[at])
        if not owner[key]:
            del owner[key]

    def _lists(self, items: list[Any]) -> Iterator[list[Any]]:
        """A list, and those of the groups that it uses."""
        yield items
        groups = self.root.get("groups") or {}
        for item in items:
            group = groups.get(item.get("use")) if isinstance(item, Mapping) else None
            if isinstance(group, list):
                yield from self._lists(group)

    def _find(self, items: list[Any], wanted: Any) -> tuple[list[Any], int] | None:
        for each in self._lists(items):
            for index, item in enumerate(each):
                if _key(item) == _key(wanted):
                    return each, index
        return None

    def _replace(self, place: _Path, items: list[Any], old: Any, new: Any) -> None:
        found = self._find(items, old)
        if found is None:
            self._miss(place, old, new)
            return
        each, index = found
        if new is None:
            del each[index]
            return
        written = each[index]
        if isinstance(written, dict) and isinstance(new, str) and "package" in written:
            written["package"] = new
        elif isinstance(written, dict) and isinstance(new, Mapping):
            for key in [*written]:
                if key not in new and key != "why":
                    del written[key]
            for key, value in new.items():
                if _key(written.get(key)) != _key(value):
                    written[key] = _like(written.get(key), value)
        else:
            each[index] = _like(written, new)

    def _insert(self, items: list[Any], before: Any, new: Any) -> None:
        if self._find(items, new) is not None:
            return
        found = None if before is None else self._find(items, before)
        each, index = (items, len(items) - 1) if found is None else found
        each.insert(0 if before is None else index + 1, _like(None, new))

    def _miss(self, place: _Path, old: Any, new: Any) -> None:
        old, new = ("nothing" if value is None else _key(value)[:_LONGEST].strip('"') for value in (old, new))
        self.missed.append((place, f"{'.'.join(place)}: {old} became {new}"))


def _like(old: Any, new: Any) -> Any:
    """A value as a spec has it: numbers and truth values without quotes, an entry of one line in braces."""
    if isinstance(new, Mapping):
        from ruamel.yaml.comments import CommentedMap

        made = CommentedMap({key: _like(None, value) for key, value in new.items() if not key.startswith(COMMENT)})
        if all(isinstance(value, str | int) and "\n" not in str(value) for value in made.values()):
            made.fa.set_flow_style()
        return made
    if isinstance(new, list):
        return [_like(None, item) for item in new]
    if isinstance(new, str) and "\n" in new:
        from ruamel.yaml.scalarstring import LiteralScalarString

        text = LiteralScalarString(new)
        if isinstance(old, LiteralScalarString) and hasattr(old, "comment"):
            text.comment = old.comment  # the blank lines below it
        return text
    if isinstance(new, str) and new in {"true", "false"}:
        return new == "true"
    if isinstance(new, str) and new.isdecimal() and (old is None or isinstance(old, int)):
        return int(new)
    return new
