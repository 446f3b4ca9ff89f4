"""Versions of CUDA and Python that a feedstock builds: in the recipe's own variant file, by a migration, or by a skip.

Where a version comes from decides what an edit changes:

- a list in `conda_build_config.yaml` or `variants.yaml` gets or loses an item, and so do the lists zipped with it;
- a migration in `.ci_support/migrations` is added from the pinning, or removed;
- a version that the pinning itself has is skipped by the recipe, even if a migration there has it still.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.edit.document import Change, Document, Entry, Part, read_document
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.own_migrations import own_migration
from feedstock_tools.edit.pinned_lists import VARIANT_FILES, are_even, with_pinned_lists, zip_group
from feedstock_tools.edit.skips import add_skip, drop_skip, list_in_skip
from feedstock_tools.edit.variables import holds_with
from feedstock_tools.edit.writing import added_item, quoted_like, removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT

__all__ = ["CUDA", "PYTHON", "Choice", "add_version", "drop_version"]

_VERSION = re.compile(r"\d{1,2}\.\d{1,3}")
#: What conda-forge's pinning zips, or zipped, with CUDA and Python: a recipe's file may rely on that.
_ZIPPED = {
    "cuda_compiler_version": frozenset(
        {
            *("cuda_compiler", "cuda_compiler_version_min", "cudnn", "docker_image", "cdt_name", "c_stdlib_version"),
            *("c_compiler_version", "cxx_compiler_version", "fortran_compiler_version", "github_actions_labels"),
        }
    ),
    "python": frozenset({"numpy", "python_impl", "is_python_min", "is_freethreading", "is_abi3"}),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A key whose values are versions: what it is called in variant files and in selectors."""

    key: str
    title: str


CUDA = Choice("cuda_compiler_version", "CUDA")
PYTHON = Choice("python", "Python")


def add_version(
    draft: Draft,
    choice: Choice,
    version: str,
    migrations: Path | None,
    values: Mapping[str, str] | None = None,
    pinned: Path | None = None,
) -> Draft:
    """Build for one more version of CUDA or Python.

    Args:
        draft: the feedstock.
        choice: `CUDA` or `PYTHON`.
        version: such as 12.9.
        migrations: the folder of the pinning's migrations, or the file of one that the pinning does not have, which
            the feedstock then keeps as its own; None without a pinning.
        values: of keys that are zipped with the version, in place of those that its neighbour or the migration has.
        pinned: the pinning's `conda_build_config.yaml`, whose lists the recipe's variant file gets if no migration adds
            a version of CUDA; None without a pinning.

    Raises:
        InputError: the version is malformed or there already, neither a variant file nor a migration can add it, or a
            key of `values` is not zipped with it.

    >>> draft = drop_version(open_draft(Path("solver-feedstock")), PYTHON, "3.10")
    >>> add_version(draft, PYTHON, "3.10", None).changes().listed()
    ()
    """
    _check(version, choice)
    given = dict(values or {})
    unlimited, unskipped = drop_skip(draft, choice.key, version)
    if unskipped:
        if given:
            raise draft.recipe.mistake(f"skips {choice.title} {version}, so that no values go with it here")
        return unlimited
    excluded, draft = draft, list_in_skip(draft, choice.key, version)
    document = _own_file(draft, choice.key)
    there = None if document is None else _listing(document, choice.key, version)
    if document is not None and there is not None:
        if draft is not excluded:
            return draft
        raise document.mistake(f"{choice.title} {version} is built already", there)
    for migration in draft.migrations:
        if _adds(migration, choice.key, version):
            raise InputError(f"adds {choice.title} {version} already", path=migration.path)
    found = _migration(migrations, choice.key, version)
    migrated = any(_is_about(migration, choice.key) for migration in draft.migrations)
    if document is not None and not (migrated and found):
        return _listed(draft, document, choice, version, given)
    if found is not None:
        return _migrated(draft, found, choice, given, is_own=found.path == migrations)
    if draft is not excluded and not given:
        return draft.remarked(f"nothing but the skip was changed: the pinning must have {choice.title} {version}")
    listed = None if pinned is None or migrated or choice is PYTHON else _copied(draft, pinned, choice, version, given)
    if listed is None:
        raise _impossible(draft, choice, version, migrations)
    return listed


def _copied(draft: Draft, pinned: Path, choice: Choice, version: str, given: Mapping[str, str]) -> Draft | None:
    """Add a version to the pinning's lists, copied into the recipe's variant file; None where they cannot take it."""
    copied = with_pinned_lists(draft, choice.key, pinned)
    if copied is None or _listing(copied[0], choice.key, version) is not None:
        return None
    lists, keys = copied
    remark = f"no migration adds {choice.title} {version}: the pinning's lists are copied to {lists.path.name}"
    listed = _listed(draft.remarked(remark), lists, choice, version, given)
    made = listed.document(lists.path)
    return listed if made is not None and are_even(made, keys) else None


def _migrated(draft: Draft, found: Document, choice: Choice, given: Mapping[str, str], *, is_own: bool) -> Draft:
    """Copy a migration into the feedstock; with other values, or from elsewhere than the pinning, as its own."""
    copied = Document(draft.folder / CI_SUPPORT / "migrations" / found.path.name, found.text)
    if given or is_own:
        copied = own_migration(copied, choice.key, given)
        draft = draft.remarked(f"{found.path.name} is the feedstock's own (use_local): a rerender does not update it")
    return draft.with_document(copied).remarked(f"rerender to get the jobs of {found.path.name}")


def _impossible(draft: Draft, choice: Choice, version: str, migrations: Path | None) -> InputError:
    why = "no migration of the pinning adds it" if migrations else "there is no pinning"
    if migrations is not None and not migrations.is_dir():
        why = f"{migrations.name} does not add it"
    hint = "List the versions in recipe/conda_build_config.yaml."
    if migrations is None:
        hint = "Name the pinning's folder with --pinning, or list the versions in recipe/conda_build_config.yaml."
    message = f"{choice.title} {version} cannot be added: the recipe lists no versions, and {why}"
    return draft.recipe.mistake(message, hint=hint)


def drop_version(draft: Draft, choice: Choice, version: str, pinned: Path | None = None) -> Draft:
    """Stop building for a version of CUDA or Python.

    The remarks of the new draft name lines that mention the version still.

    Args:
        draft: the feedstock.
        choice: `CUDA` or `PYTHON`.
        version: such as 12.9.
        pinned: the pinning's `conda_build_config.yaml`; a version that it has is skipped, since the pinning would
            bring it back without the migration. None without a pinning.

    Raises:
        InputError: the version is malformed, or the only one that the recipe lists.

    >>> drop_version(open_draft(Path("solver-feedstock")), PYTHON, "3.10").changes().listed()
    (('change', 'recipe/meta.yaml'),)
    """
    _check(version, choice)
    document = _own_file(draft, choice.key)
    mentions = _mentions(draft.recipe, choice, version)
    dropped = False
    if document is not None and _listing(document, choice.key, version) is not None:
        draft, dropped = _unlisted(draft, document, choice, version), True
    is_pinned = pinned is not None and _listing(read_document(pinned, within=None), choice.key, version) is not None
    for migration in draft.migrations:
        if _adds(migration, choice.key, version) and not is_pinned:
            alone = len(_versions(migration, choice.key)) == 1
            draft = draft.without(migration.path) if alone else _unlisted(draft, migration, choice, version)
            dropped = True
        elif _listing(migration, choice.key, version) is not None:
            mentions.append(f"{migration.path.name}: has values for {choice.title} {version}")
    if not dropped:
        draft = add_skip(draft, choice.key, version)
    return draft.remarked(*mentions)


def _check(version: str, choice: Choice) -> None:
    if not _VERSION.fullmatch(version):
        raise InputError(
            f"'{version}' is not a version of {choice.title}", hint="Expected major and minor, such as 12.9."
        )


def _is(item: Part, version: str) -> bool:
    """Whether an item of a list of versions is that one: `3.12.* *_cpython` is 3.12."""
    return item.kind == "scalar" and _number(item) == version


def _number(item: Part) -> str:
    return re.split(r"\.\*| ", item.text)[0]


def _is_about(migration: Document, key: str) -> bool:
    """Whether a migration is there for versions of a key: its ordering is of the key, or it has none."""
    ordering = [entry for entry in migration.entries("__migrator", "ordering") if entry.value.entries]
    about = not ordering or any(each.key == key for entry in ordering for each in entry.value.entries)
    return about and bool(_versions(migration, key))


def _adds(migration: Document, key: str, version: str) -> bool:
    """Whether a migration is there to add a version: it is the only one there, or the file is named for it.

    One that lists all versions changes what is zipped with them, such as the platforms.
    """
    if not _is_about(migration, key) or _listing(migration, key, version) is None:
        return False
    return len(_versions(migration, key)) == 1 or version.replace(".", "") in migration.path.stem


def _versions(document: Document, key: str) -> frozenset[str]:
    """The versions that a file lists."""
    items = (item for entry in document.entries(key) for item in entry.value.items)
    return frozenset(_number(item) for item in items if item.kind == "scalar" and _VERSION.match(item.text))


def _listing(document: Document, key: str, version: str) -> Part | None:
    """The first list of a key that has a version."""
    lists = (entry.value for entry in document.entries(key))
    return next((list_ for list_ in lists if any(_is(item, version) for item in list_.items)), None)


def _own_file(draft: Draft, key: str) -> Document | None:
    """The variant file of the recipe that lists versions."""
    files = (document for name in VARIANT_FILES if (document := draft.file(name)) is not None)
    return next((document for document in files if _versions(document, key)), None)


def _zipped(document: Document, key: str) -> frozenset[str]:
    """The keys zipped with a key in a variant file; where it has no zip_keys for it, those that the pinning zips."""
    return zip_group(document, key) or _ZIPPED[key]


def _listed(draft: Draft, document: Document, choice: Choice, version: str, given: Mapping[str, str]) -> Draft:
    """Add a version to each list of the variant file, and to the lists zipped with it the value of its neighbour."""
    changes: list[Change] = []
    copied = []
    unused = set(given)
    for entry in document.entries(choice.key):
        list_ = entry.value
        at = max((at for at, item in enumerate(list_.items) if _VERSION.match(item.text)), default=None)
        if at is None:
            continue
        for place in _alike(document, list_, at):
            neighbour = list_.items[place]
            text = quoted_like(neighbour, neighbour.text.replace(_number(neighbour), version))
            changes += _after(document, list_, place, text)
            for partner, own_at in _beside(document, choice.key, entry, place):
                own = partner.value.items[own_at]
                if partner.key in given:
                    source = quoted_like(own, given[partner.key])
                    unused.discard(partner.key)
                else:
                    source = re.sub(rf"(?<![\d.]){re.escape(_number(neighbour))}(?![\d.])", version, own.source)
                    copied.append(f"{partner.key}: {source}")
                changes += _after(document, partner.value, own_at, source)
    if not changes:
        raise document.mistake(f"lists no version of {choice.title}", next(document.entries(choice.key)))
    if unused:
        message = f"{sorted(unused)[0]} is not listed beside {choice.key} here"
        raise document.mistake(message, hint=f"Expected one of {', '.join(sorted(_zipped(document, choice.key)))}.")
    remarks = (
        [f"zipped with {choice.title} {version}, copied from its neighbour: {', '.join(dict.fromkeys(copied))}"]
        if copied
        else []
    )
    return draft.with_document(document.changed(changes)).remarked(*remarks)


def _alike(document: Document, list_: Part, at: int) -> list[int]:
    """The places of a version that a list has once for each selector; of one that it repeats otherwise that place."""
    places = [place for place, item in enumerate(list_.items) if item.text == list_.items[at].text]
    selectors = {document.selector_of(list_.items[place]) for place in places}
    return places if len(selectors) == len(places) else [at]


def _beside(document: Document, key: str, entry: Entry, at: int) -> Iterator[tuple[Entry, int]]:
    """What is zipped with an item of a list: other lists with the index in them."""
    for partner in _partners(document, key, entry):
        for own_at in _counterparts(document, entry.value, at, partner.value):
            yield partner, own_at


def _after(document: Document, list_: Part, at: int, text: str) -> list[Change]:
    """Add an item behind that with an index, with the selector that that one has."""
    selector = document.selector_of(list_.items[at])
    sub = Part("sequence", list_.start, list_.items[at].end, style=list_.style, items=list_.items[: at + 1])
    if list_.is_flow and at + 1 < len(list_.items):
        return [Change(list_.items[at].end, list_.items[at].end, f", {text}")]
    neighbour = list_.items[at]
    place = document.text.find("#", neighbour.end, document.line_end(neighbour.end)) if selector else -1
    text = text.ljust(place - neighbour.start - 2)
    return added_item(document, sub, text, f"# [{selector}]" if selector and not list_.is_flow else "", sort=False)


def _partners(document: Document, key: str, entry: Entry) -> Iterator[Entry]:
    """The lists zipped with one, of several by selector those with its selector."""
    for name in sorted(_zipped(document, key)):
        found = [each for each in document.entries(name) if each.value.items]
        same = [each for each in found if document.selector_of(each) == document.selector_of(entry)]
        yield from same[:1] or found[:1]


def _counterparts(document: Document, list_: Part, at: int, other: Part) -> list[int]:
    """The indices in another list of what is zipped with an item: at the same place among the items for its selector.

    Several if the other list tells more apart (`linux64 and native`, `linux64 and crossed`). Where the numbers of items
    differ, those that name the version; none if there are none, and the lists do not go together.
    """
    selectors = [[document.selector_of(item) for item in each.items] for each in (list_, other)]
    own = selectors[0][at]
    places = [place for place, selector in enumerate(selectors[0]) if holds_with(selector, own)]
    found: list[int] = []
    for condition in dict.fromkeys((own, *selectors[1])):
        group = [place for place, selector in enumerate(selectors[1]) if holds_with(selector, condition)]
        if holds_with(own, condition) and len(group) == len(places):
            found.append(group[places.index(at)])
    version = re.escape(_number(list_.items[at]))
    named = [place for place, item in enumerate(other.items) if re.search(rf"(?<![\d.]){version}(?![\d.])", item.text)]
    return list(dict.fromkeys(found or named)) or ([at] if len(list_.items) == len(other.items) else [])


def _unlisted(draft: Draft, document: Document, choice: Choice, version: str) -> Draft:
    """Remove a version from the lists of the variant file, and what is zipped with it."""
    changes: list[Change] = []
    for entry in document.entries(choice.key):
        gone = [at for at, item in enumerate(entry.value.items) if _is(item, version)]
        if gone and len(gone) == len(entry.value.items):
            raise document.mistake(f"{choice.title} {version} is the only one that is built here", entry)
        for each in (entry, *_partners(document, choice.key, entry)):
            found = [place for at in gone for place in _counterparts(document, entry.value, at, each.value)]
            changes += removed_items(document, each.value, [each.value.items[at] for at in found])
    return draft.with_document(document.changed(changes))


def _migration(folder: Path | None, key: str, version: str) -> Document | None:
    """The migration of the pinning that adds a version, first one that is named for it; or the file itself, if it
    does."""
    digits = version.replace(".", "")
    paths = sorted(folder.glob("*.y*ml"), key=lambda path: (digits not in path.stem, path.name)) if folder else []
    if folder is not None and not folder.is_dir():
        paths = [folder]
    for path in paths:
        document = read_document(path, within=None if path == folder else folder)
        if key in document.text and _adds(document, key, version):
            return document
    return None


def _mentions(recipe: Document, choice: Choice, version: str) -> list[str]:
    """Lines of the recipe that compare with a version that is no longer built."""
    digits = version.replace(".", "")
    words = (
        rf"{choice.key}.*{re.escape(version)}(?![\d.])"
        if choice is CUDA
        else rf"\bpy\s*[<>=!]+\s*{digits}\b|python.*{re.escape(version)}(?!\d)"
    )
    pattern = re.compile(words)
    return [
        f"{recipe.path.name}:{number} mentions {choice.title} {version}: {line.strip()}"
        for number, line in enumerate(recipe.text.splitlines(), 1)
        if pattern.search(line) and "skip" not in line
    ]
