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
from feedstock_tools.edit.variants.lists import (
    PLATFORMS,
    VARIANT_FILES,
    VERSION,
    are_even,
    counterparts,
    is_version,
    listing,
    names_version,
    platforms_with,
    version_of,
    versions_in,
    with_pinned_lists,
    zipped_lists,
    zipped_with,
)
from feedstock_tools.edit.variants.migrations import (
    adds_version,
    identity,
    is_about,
    is_own,
    own_migration,
    pinned_migration,
    values_beside,
)
from feedstock_tools.edit.variants.skips import add_skip, drop_skip, list_in_selectors, list_in_skip
from feedstock_tools.edit.writing import added_item, quoted_like, removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT

__all__ = ["CUDA", "PYTHON", "Choice", "add_version", "drop_version"]


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
    found = pinned_migration(migrations, choice.key, version)
    neighbour = _neighbour(draft, choice.key, version, pinned)
    added = _added(draft, choice, version, Sources(migrations, found, pinned), dict(values or {}))
    return added if neighbour is None else list_in_selectors(added, choice.key, version, neighbour)


def _neighbour(draft: Draft, key: str, version: str, pinned: Path | None) -> str | None:
    """The newest version of the feedstock and the pinning that is older than one; None if there is none."""
    files = [draft.file(name) for name in VARIANT_FILES] + [*draft.migrations]
    files += [read_document(pinned, within=None)] if pinned is not None else []
    built = {each for document in files if document is not None for each in versions_in(document, key)}
    older = [each for each in built if _order(each) < _order(version)]
    return max(older, key=_order, default=None)


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.removesuffix("t").split(".")[:2]))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a version may come from: the pinning's folder of migrations or one named file, the migration there that
    adds the version, and the pinning's variant file; None for what is missing."""

    migrations: Path | None
    migration: Document | None
    pinned: Path | None

    @property
    def is_named(self) -> bool:
        """Whether the migration is a file that the user named, not one of the pinning."""
        return self.migration is not None and self.migration.path == self.migrations


def _added(draft: Draft, choice: Choice, version: str, sources: Sources, given: Mapping[str, str]) -> Draft:
    """Build for one more version, in the first place that can have it."""
    unlimited, unskipped = drop_skip(draft, choice.key, version)
    if unskipped:
        if given:
            raise draft.recipe.mistake(f"skips {choice.title} {version}, so that no values go with it here")
        return unlimited
    found = sources.migration
    platforms = platforms_with(found, choice.key, version) if found is not None else PLATFORMS
    lists = read_document(sources.pinned, within=None) if sources.pinned is not None and found is not None else None
    others = () if lists is None else platforms_with(lists, choice.key, version)
    excluded, draft = draft, list_in_skip(draft, choice.key, version, platforms, others)
    document = _own_file(draft, choice.key)
    there = None if document is None else listing(document, choice.key, version)
    if document is not None and there is not None:
        if draft is not excluded:
            return draft
        raise document.mistake(f"{choice.title} {version} is built already", there)
    migrated = any(is_about(migration, choice.key) for migration in draft.migrations)
    draft = _without_outdated(draft, choice, version, sources)
    if document is not None and not (migrated and found):
        return _listed(draft, document, choice, version, given, found)
    if found is not None:
        return _migrated(draft, found, choice, given, is_own=sources.is_named)
    if draft is not excluded and not given:
        return draft.remarked(f"nothing but the skip was changed: the pinning must have {choice.title} {version}")
    pinned = sources.pinned
    listed = None if pinned is None or migrated or choice is PYTHON else _copied(draft, pinned, choice, version, given)
    if listed is None:
        raise _impossible(draft, choice, version, sources.migrations)
    return listed


def _without_outdated(draft: Draft, choice: Choice, version: str, sources: Sources) -> Draft:
    """The draft without a migration that adds the version, if a rerender drops it because the pinning has it anew.

    Raises:
        InputError: a rerender keeps it.
    """
    for migration in draft.migrations:
        if adds_version(migration, choice.key, version):
            found = sources.migration
            if found is None or sources.is_named or is_own(migration) or identity(found) == identity(migration):
                raise InputError(f"adds {choice.title} {version} already", path=migration.path)
            remark = f"{migration.path.name} is of an earlier round: the pinning's {found.path.name} takes its place"
            draft = draft.without(migration.path).remarked(remark)
    return draft


def _copied(draft: Draft, pinned: Path, choice: Choice, version: str, given: Mapping[str, str]) -> Draft | None:
    """Add a version to the pinning's lists, copied into the recipe's variant file; None where they cannot take it."""
    copied = with_pinned_lists(draft, choice.key, pinned)
    if copied is None or listing(copied[0], choice.key, version) is not None:
        return None
    lists, keys = copied
    remark = f"no migration adds {choice.title} {version}: the pinning's lists are copied to {lists.path.name}"
    listed = _listed(draft.remarked(remark), lists, choice, version, given, None)
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
    if document is not None and listing(document, choice.key, version) is not None:
        draft, dropped = _unlisted(draft, document, choice, version), True
    is_pinned = pinned is not None and listing(read_document(pinned, within=None), choice.key, version) is not None
    for migration in draft.migrations:
        if adds_version(migration, choice.key, version) and not is_pinned:
            alone = len(versions_in(migration, choice.key)) == 1
            draft = draft.without(migration.path) if alone else _unlisted(draft, migration, choice, version)
            dropped = True
        elif listing(migration, choice.key, version) is not None:
            mentions.append(f"{migration.path.name}: has values for {choice.title} {version}")
    if not dropped:
        draft = add_skip(draft, choice.key, version)
    return draft.remarked(*mentions)


def _check(version: str, choice: Choice) -> None:
    if not VERSION.fullmatch(version.removesuffix("t") if choice is PYTHON else version):
        raise InputError(
            f"'{version}' is not a version of {choice.title}", hint="Expected major and minor, such as 12.9."
        )


def _own_file(draft: Draft, key: str) -> Document | None:
    """The variant file of the recipe that lists versions."""
    files = (document for name in VARIANT_FILES if (document := draft.file(name)) is not None)
    return next((document for document in files if versions_in(document, key)), None)


def _listed(
    draft: Draft,
    document: Document,
    choice: Choice,
    version: str,
    given: Mapping[str, str],
    migration: Document | None,
) -> Draft:
    """Add a version to each list of the variant file; the lists zipped with it get the given value, that of the
    pinning's migration, or else that of its neighbour."""
    known = {} if migration is None else values_beside(migration, choice.key, version)
    changes: list[Change] = []
    copied = []
    unused = set(given)
    for entry in document.entries(choice.key):
        list_ = entry.value
        places = [place for place, item in enumerate(list_.items) if VERSION.match(item.text)]
        alike = [place for place in places if _is_threaded(version_of(list_.items[place])) == _is_threaded(version)]
        at = max(alike or places, default=None)
        if at is None:
            continue
        for place in _alike(document, list_, at):
            neighbour = list_.items[place]
            text = quoted_like(neighbour, _named(neighbour.text, version, known.get(choice.key, "")))
            renamed = (version_of(neighbour), version)
            changes += _after(document, list_, place, text, renamed)
            for partner, own_at in _beside(document, choice.key, entry, place):
                own = partner.value.items[own_at]
                if partner.key in given:
                    source = quoted_like(own, given[partner.key])
                    unused.discard(partner.key)
                elif partner.key in known:
                    source = quoted_like(own, known[partner.key])
                else:
                    source = re.sub(rf"(?<![\d.]){re.escape(version_of(neighbour))}(?![\d.])", version, own.source)
                    copied.append(f"{partner.key}: {source}")
                changes += _after(document, partner.value, own_at, source, renamed)
    if not changes:
        raise document.mistake(f"lists no version of {choice.title}", next(document.entries(choice.key)))
    if unused:
        message = f"{sorted(unused)[0]} is not listed beside {choice.key} here"
        raise document.mistake(message, hint=f"Expected one of {', '.join(sorted(zipped_with(document, choice.key)))}.")
    remarks = (
        [f"zipped with {choice.title} {version}, copied from its neighbour: {', '.join(dict.fromkeys(copied))}"]
        if copied
        else []
    )
    return draft.with_document(document.changed(changes)).remarked(*remarks)


def _is_threaded(version: str) -> bool:
    """Whether a version is Python without the global interpreter lock."""
    return version.endswith("t")


def _named(neighbour: str, version: str, migrated: str) -> str:
    """The text of a version in a list, as its neighbour is written; with a build string that of the migration."""
    number, dash, build = neighbour.partition(" ")
    if dash and migrated:
        return migrated
    plain = version.rstrip("t")
    build = re.sub(r"_cp\d+t?$", f"_cp{version.replace('.', '')}", build)
    return re.sub(r"^\d+\.\d+", plain, number) + dash + build


def _alike(document: Document, list_: Part, at: int) -> list[int]:
    """The places of a version that a list has once for each selector; of one that it repeats otherwise that place."""
    places = [place for place, item in enumerate(list_.items) if item.text == list_.items[at].text]
    selectors = {document.selector_of(list_.items[place]) for place in places}
    return places if len(selectors) == len(places) else [at]


def _beside(document: Document, key: str, entry: Entry, at: int) -> Iterator[tuple[Entry, int]]:
    """What is zipped with an item of a list: other lists with the index in them."""
    for partner in zipped_lists(document, key, entry):
        for own_at in counterparts(document, entry.value, at, partner.value):
            yield partner, own_at


def _after(document: Document, list_: Part, at: int, text: str, renamed: tuple[str, str]) -> list[Change]:
    """Add an item after that with an index, with the selector that that one has; `renamed` are the neighbour's version
    and the new one: a comment that names the first is copied with the second."""
    selector = document.selector_of(list_.items[at])
    comment = document.comment_after(list_.items[at])
    own = comment.replace(*renamed) if names_version(comment, renamed[0]) else f"# [{selector}]" if selector else ""
    sub = Part("sequence", list_.start, list_.items[at].end, style=list_.style, items=list_.items[: at + 1])
    if list_.is_flow and at + 1 < len(list_.items):
        return [Change(list_.items[at].end, list_.items[at].end, f", {text}")]
    neighbour = list_.items[at]
    place = document.text.find("#", neighbour.end, document.line_end(neighbour.end)) if own else -1
    text = text.ljust(place - neighbour.start - 2)
    return added_item(document, sub, text, own if not list_.is_flow else "", sort=False)


def _unlisted(draft: Draft, document: Document, choice: Choice, version: str) -> Draft:
    """Remove a version from the lists of the variant file, and what is zipped with it."""
    changes: list[Change] = []
    for entry in document.entries(choice.key):
        gone = [at for at, item in enumerate(entry.value.items) if is_version(item, version)]
        if gone and len(gone) == len(entry.value.items):
            raise document.mistake(f"{choice.title} {version} is the only one that is built here", entry)
        for each in (entry, *zipped_lists(document, choice.key, entry)):
            found = [place for at in gone for place in counterparts(document, entry.value, at, each.value)]
            changes += removed_items(document, each.value, [each.value.items[at] for at in found])
    return draft.with_document(document.changed(changes))


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
