"""Versions of CUDA and Python that a feedstock builds: in the recipe's own variant file, by a migration, or by a skip.

Where a version comes from decides what an edit changes:

- a list in `conda_build_config.yaml` or `variants.yaml` gets or loses an item, and so do the lists zipped with it;
- a migration in `.ci_support/migrations` is added from the pinning, or removed;
- a version that the pinning itself has is skipped by the recipe, even if a migration there still has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.scripts import failing, lines_with, without_branches
from feedstock_tools.edit.variants.lists import (
    CUDA,
    PLATFORMS,
    PYTHON,
    VERSION,
    VersionKey,
    are_even,
    listing,
    newest,
    older_than,
    platforms_with,
    version_of,
    versions_in,
    versions_on,
    with_listed,
    with_pinned_lists,
    with_version,
    without_listed,
    without_version,
)
from feedstock_tools.edit.variants.skips import add_skip, drop_skip, keep_skipped, list_in_selectors, list_in_skip
from feedstock_tools.edit.writing import added_entry, added_item, quoted_like, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.recipe.written.document import (
    VARIANT_FILES,
    Document,
    Entry,
    Part,
    TextEdit,
    read_document,
    selector_in,
)
from feedstock_tools.versions import parse_version

#: What scripts test for the version of a build.
_VARIABLES: Mapping[VersionKey, str] = {CUDA: "cuda_compiler_version", PYTHON: "PY_VER"}
#: Where a spec lists the versions.
_IN_SPEC: Mapping[VersionKey, tuple[str, ...]] = {CUDA: ("cuda", "versions"), PYTHON: ("python",)}
_PATCHES = ("*.patch", "*.diff", "*/*.patch", "*/*.diff")


def _is_about(migration: Document, key: str) -> bool:
    """Whether a migration is about versions of a key: its ordering is for the key, or it has no ordering."""
    ordering = [entry for entry in migration.entries("__migrator", "ordering") if entry.value.entries]
    about = not ordering or any(ordered.key == key for entry in ordering for ordered in entry.value.entries)
    return about and bool(versions_in(migration, key))


def _adds_version(migration: Document, key: str, version: str) -> bool:
    """Whether the purpose of a migration is to add a version: it lists no other, or the file is named for it.

    One that lists all versions changes what is zipped with them, such as the platforms, unless it is named for the key
    too (`cuda110.yaml`).
    """
    if listing(migration, key, version) is None:
        return False
    digits = version.replace(".", "")
    if re.fullmatch(rf"{key.partition('_')[0]}[_-]?{digits}", migration.path.stem):
        return True
    return _is_about(migration, key) and (len(versions_in(migration, key)) == 1 or digits in migration.path.stem)


def _pinned_migration(source: Path | None, key: str, version: str) -> Document | None:
    """The migration that adds a version; in a folder, the first one, with those that are named for it before others.

    Args:
        source: the folder of the pinning's migrations, or the file of one; None without a pinning.
    """
    if source is None:
        return None
    if not source.is_dir():
        document = read_document(source, within=None)
        return document if _adds_version(document, key, version) else None
    digits = version.replace(".", "")
    for path in sorted(source.glob("*.y*ml"), key=lambda path: (digits not in path.stem, path.name)):
        document = read_document(path, within=source)
        if key in document.text and _adds_version(document, key, version):
            return document
    return None


def _is_own(migration: Document) -> bool:
    """Whether a rerender keeps a migration as the feedstock has it."""
    return any(entry.value.text.lower() == "true" for entry in migration.entries("__migrator", "use_local"))


def identity(migration: Document) -> tuple[str, str]:
    """The values by which a rerender identifies a migration: its time stamp, and the number of its round."""
    number = (*migration.entries("__migrator", "migration_number"), None)[0]
    stamp = (*migration.entries("migrator_ts"), None)[0]
    return stamp.value.text if stamp else "", number.value.text if number else ""


def _own_migration(migration: Document, key: str, values: Mapping[str, str]) -> Document:
    """A migration with other values, and with `use_local: true`, so that a rerender keeps it as it is.

    Args:
        key: the key whose version it adds.
        values: for other keys; a key that the migration lacks is added below the version, with its selector.

    >>> text = "__migrator: {migration_number: 1}\\ncuda_compiler_version:\\n  - 13.0\\nc_compiler_version:\\n  - 14\\n"
    >>> migration = Document(Path("cuda130.yaml"), text)
    >>> _own_migration(migration, "cuda_compiler_version", {"c_compiler_version": "13"}).text.splitlines()[-1]
    '  - 13'
    """
    changes: list[TextEdit] = _with_use_local(migration)
    for name, value in values.items():
        lists = [entry for entry in migration.entries(name) if entry.value.items]
        for entry in lists:
            changes += [change for item in entry.value.items for change in replaced(migration, item, value)]
        if not lists and migration.root is not None:
            last = [entry for entry in migration.entries(key) if entry.value.items][-1]
            item = last.value.items[-1]
            lead = migration.text[migration.line_start(item.start) : item.start]
            selector = selector_in(migration.comment_after(item))
            line = f"{lead}{quoted_like(item, value)}{f'  # [{selector}]' if selector else ''}"
            changes += added_entry(migration, migration.root, name, [line], last)
    return migration.changed(changes)


def _with_use_local(migration: Document) -> list[TextEdit]:
    """Set `use_local`, at the top of the section `__migrator`."""
    for entry in migration.entries("__migrator", "use_local"):
        return replaced(migration, entry.value, "true")
    for entry in migration.entries("__migrator"):
        if entry.value.is_flow:
            offset = entry.value.start + 1
            return [TextEdit(offset, offset, "use_local: true, ")]
        if entry.value.entries:
            first = entry.value.entries[0]
            lead = " " * migration.column_of(first.start)
            start = migration.line_start(first.start)
            return [TextEdit(start, start, f"{lead}use_local: true{migration.newline}")]
    return [TextEdit(0, 0, f"__migrator:{migration.newline}  use_local: true{migration.newline}")]


def add_version(
    draft: Draft,
    key: VersionKey,
    version: str,
    migrations: Path | None,
    values: Mapping[str, str] | None = None,
    pinned: Path | None = None,
) -> Draft:
    """Build for one more version of CUDA or Python.

    Args:
        draft: the feedstock.
        key: `CUDA` or `PYTHON`.
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
    _check(version, key)
    given = dict(values or {})
    if (spec := draft.spec) is not None and (entry := _listed_in_spec(draft, spec, key)) is not None:
        others = {version_of(item) for item in entry.value.items}
        if version in others:
            raise spec.mistake(f"{key.title} {version} is built already", entry)
        added = _migrated_in_spec(draft, spec, entry, key, version, _Pinning(migrations, None, pinned), given)
        return _checked(added.with_document(with_listed(spec, entry.value, version)), key, version, others)
    files = _files_with(draft, key.name, pinned)
    older = older_than(version, {built for document in files for built in versions_in(document, key.name)})
    unskipped, is_unskipped = drop_skip(draft, key.name, version, is_oldest=bool(files) and not older)
    if is_unskipped and given:
        raise draft.recipe.mistake(f"skips {key.title} {version}, so that no values go with it here")
    if is_unskipped:
        added = unskipped
    else:
        migration = _pinned_migration(migrations, key.name, version)
        platforms = PLATFORMS if migration is None else platforms_with(migration, key.name, version)
        added = _added(draft, key, version, _Pinning(migrations, migration, pinned), platforms, given)
        built = {platform: versions_on(platform, files, key.name) - {version} for platform in platforms}
        added = keep_skipped(added, key.name, version, built)
    others = {built for document in files for built in versions_in(document, key.name)} - {version}
    added = _checked(added, key, version, others)
    neighbour = newest(older)
    return added if neighbour is None else list_in_selectors(added, key.name, version, neighbour)


def _listed_in_spec(draft: Draft, spec: Document, key: VersionKey) -> Entry | None:
    """The list of versions in the spec; None if what the spec generates, or the pinning, has to be edited.

    Raises:
        InputError: the spec has a word in its place, and no pinning has a list that an edit could change.
    """
    entry = next(spec.entries(*_IN_SPEC[key]), None)
    if entry is not None and entry.value.items:
        return entry
    if not _is_self_contained(spec):
        return None
    own = _own_file(draft, key.name)
    listed = ", ".join(sorted(versions_in(own, key.name), key=parse_version)) if own else ""
    hint = f"List them, then edit the list: {': {'.join(_IN_SPEC[key])}: [{listed}]" + "}" * (key is CUDA)
    if not listed:
        hint = "Write the section `cuda` first." if key is CUDA else "Write the list `python` first."
    raise spec.mistake(f"lists no versions of {key.title}", entry, hint=hint)


def _is_self_contained(spec: Document) -> bool:
    return any(entry.value.text == "self-contained" for entry in spec.entries("pinning"))


def _migrated_in_spec(
    draft: Draft,
    spec: Document,
    entry: Entry,
    key: VersionKey,
    version: str,
    pinning: _Pinning,
    given: Mapping[str, str],
) -> Draft:
    """The draft with the migration that a version needs which a spec lists: its list selects from the pinning.

    Raises:
        InputError: neither the pinning nor a migration has the version, or there is no use for one that was named.
    """
    pinned, migrations = pinning.pinned, pinning.migrations
    known = [*draft.migrations, *([read_document(pinned, within=None)] if pinned is not None else [])]
    is_there = pinned is None or any(listing(each, key.name, version) is not None for each in known)
    if _is_self_contained(spec) or is_there:
        if given or (migrations is not None and not migrations.is_dir()):
            raise spec.mistake(f"the spec alone decides on {key.title} {version}: it takes no migration here", entry)
        return draft
    migration = _pinned_migration(migrations, key.name, version)
    if migration is None:
        hint = "Name a migration with --migration."
        raise spec.mistake(f"neither the pinning nor a migration of it has {key.title} {version}", entry, hint=hint)
    return _migrated(draft, migration, key, given, is_own=migration.path == migrations)


def _checked(added: Draft, key: VersionKey, version: str, others: Iterable[str]) -> Draft:
    """A draft with one more version, its patches, and what its scripts do with the version and not with the others."""
    added, others = with_patches(added, key, version), frozenset(others)
    tested = _in_scripts(added, key, others)
    for subdir in (platform.subdir for platform in PLATFORMS):
        old = [{"target_platform": subdir, _VARIABLES[key]: other} for other in others]
        added = added.doubted(*failing(added, {"target_platform": subdir, _VARIABLES[key]: version}, old))
    return added.remarked(*(f"{place}, which {key.title} {version} may need too" for place in tested))


def _files_with(draft: Draft, key: str, pinned: Path | None) -> list[Document]:
    """The variant files and migrations that list versions of a key: the feedstock's, and the pinning's file."""
    files = [draft.file(name) for name in VARIANT_FILES] + [*draft.migrations]
    files += [read_document(pinned, within=None)] if pinned is not None else []
    return [document for document in files if document is not None and versions_in(document, key)]


@dataclass(frozen=True, slots=True)
class _Pinning:
    """Where a version may come from: the pinning's folder of migrations or one named file, the migration there that
    adds the version, and the pinning's variant file; None for what is missing."""

    migrations: Path | None
    migration: Document | None
    pinned: Path | None

    @property
    def is_named(self) -> bool:
        """Whether the migration is a file that the user named, not one of the pinning."""
        return self.migration is not None and self.migration.path == self.migrations


def _added(
    draft: Draft,
    key: VersionKey,
    version: str,
    pinning: _Pinning,
    platforms: tuple[Platform, ...],
    given: Mapping[str, str],
) -> Draft:
    """Build for one more version on some platforms, with the first of the sources that can add it."""
    migration, pinned = pinning.migration, pinning.pinned
    pinned_file = None if pinned is None else read_document(pinned, within=None)
    others = () if pinned_file is None or migration is None else platforms_with(pinned_file, key.name, version)
    before, draft = draft, list_in_skip(draft, key.name, version, platforms, others)
    document = _own_file(draft, key.name)
    list_ = None if document is None else listing(document, key.name, version)
    if document is not None and list_ is not None:
        if draft is not before:
            return draft
        raise document.mistake(f"{key.title} {version} is built already", list_)
    is_migrated = any(_is_about(local, key.name) for local in draft.migrations)
    draft = _without_outdated(draft, key, version, pinning)
    if document is not None and not (is_migrated and migration):
        return with_version(draft, document, key, version, given, migration)
    if migration is not None:
        return _migrated(draft, migration, key, given, is_own=pinning.is_named)
    is_pinned = pinned_file is None or listing(pinned_file, key.name, version) is not None
    if draft is not before and is_pinned and not given:
        return draft.remarked(f"only the skip was changed: the pinning must have {key.title} {version}")
    can_copy = pinned is not None and not is_migrated and key is not PYTHON
    listed = _copied(draft, pinned, key, version, given) if pinned is not None and can_copy else None
    if listed is None:
        raise _impossible(draft, key, version, pinning.migrations)
    return listed


def _without_outdated(draft: Draft, key: VersionKey, version: str, pinning: _Pinning) -> Draft:
    """The draft without a migration that adds the version, if a rerender drops it because the pinning has a new one."""
    pinned = pinning.migration
    for migration in draft.migrations:
        if _adds_version(migration, key.name, version):
            if pinned is None or pinning.is_named or _is_own(migration) or identity(pinned) == identity(migration):
                raise InputError(f"adds {key.title} {version} already", path=migration.path)
            remark = f"{migration.path.name} is of an earlier round: the pinning's {pinned.path.name} takes its place"
            draft = draft.without(migration.path).remarked(remark)
    return draft


def _copied(draft: Draft, pinned: Path, key: VersionKey, version: str, given: Mapping[str, str]) -> Draft | None:
    """Add a version to the pinning's lists, copied into the recipe's variant file; None where they cannot take it."""
    copied = with_pinned_lists(draft, key.name, pinned)
    if copied is None or listing(copied[0], key.name, version) is not None:
        return None
    variant_file, keys = copied
    remark = f"no migration adds {key.title} {version}: the pinning's lists are copied to {variant_file.path.name}"
    listed = with_version(draft.remarked(remark), variant_file, key, version, given, None)
    longer = listed.document(variant_file.path)
    return listed if longer is not None and are_even(longer, keys) else None


def _migrated(draft: Draft, migration: Document, key: VersionKey, given: Mapping[str, str], *, is_own: bool) -> Draft:
    """Copy a migration into the feedstock; with other values, or from elsewhere than the pinning, as its own."""
    name = migration.path.name
    copied = Document(draft.folder / CI_SUPPORT / "migrations" / name, migration.text)
    if given or is_own:
        copied = _own_migration(copied, key.name, given)
        draft = draft.remarked(f"{name} is the feedstock's own (use_local): a rerender does not update it")
    return draft.with_document(copied).remarked(f"rerender to get the jobs of {name}")


def _impossible(draft: Draft, key: VersionKey, version: str, migrations: Path | None) -> InputError:
    """The error for a version that neither a variant file nor a migration can add."""
    why = "no migration of the pinning adds it"
    hint = "Name a migration with --migration, or list the versions in recipe/conda_build_config.yaml."
    if migrations is not None and not migrations.is_dir():
        why = f"{migrations.name} does not add it"
    if migrations is None:
        why = "there is no pinning"
        hint = "Name the pinning's folder with --pinning, or list the versions in recipe/conda_build_config.yaml."
    if draft.spec is not None:
        hint = hint.replace("list the versions in recipe/conda_build_config.yaml", "write the spec for it")
    message = f"{key.title} {version} cannot be added: the recipe lists no versions, and {why}"
    return draft.recipe.mistake(message, hint=hint)


def drop_version(draft: Draft, key: VersionKey, version: str, pinned: Path | None = None) -> Draft:
    """Stop building for a version of CUDA or Python.

    The remarks of the new draft name lines that still mention the version.

    Args:
        draft: the feedstock.
        key: `CUDA` or `PYTHON`.
        version: such as 12.9.
        pinned: the pinning's `conda_build_config.yaml`; a version that it has is skipped, since the pinning would
            bring it back without the migration. None without a pinning.

    Raises:
        InputError: the version is malformed, or the only one that the recipe lists.

    >>> drop_version(open_draft(Path("solver-feedstock")), PYTHON, "3.10").changes().listed()
    (('change', 'recipe/meta.yaml'),)
    """
    _check(version, key)
    document = _own_file(draft, key.name)
    files = _files_with(draft, key.name, pinned)
    left = {"None", *(built for file in files for built in versions_in(file, key.name))} - {version}
    draft = without_branches(draft, _VARIABLES[key], version, left)
    if (spec := draft.spec) is not None and (entry := _listed_in_spec(draft, spec, key)) is not None:
        listed = draft.with_document(without_listed(spec, entry, key, version))
        return listed.remarked(*_in_scripts(draft, key, {version}))
    mentions = [*_mentions(draft.recipe, key, version), *_in_scripts(draft, key, {version})]
    dropped = False
    if document is not None and listing(document, key.name, version) is not None:
        draft, dropped = without_version(draft, document, key, version), True
    is_pinned = pinned is not None and listing(read_document(pinned, within=None), key.name, version) is not None
    for migration in draft.migrations:
        if _adds_version(migration, key.name, version) and not is_pinned:
            alone = len(versions_in(migration, key.name)) == 1
            draft = draft.without(migration.path) if alone else without_version(draft, migration, key, version)
            dropped = True
        elif listing(migration, key.name, version) is not None:
            mentions.append(f"{migration.path.name}: has values for {key.title} {version}")
    if not dropped:
        draft = add_skip(draft, key.name, version)
    return draft.remarked(*mentions)


def _check(version: str, key: VersionKey) -> None:
    if not VERSION.fullmatch(version.removesuffix("t") if key is PYTHON else version):
        raise InputError(f"'{version}' is not a version of {key.title}", hint="Expected major and minor, such as 12.9.")


def _own_file(draft: Draft, key: str) -> Document | None:
    files = (document for name in VARIANT_FILES if (document := draft.file(name)) is not None)
    return next((document for document in files if versions_in(document, key)), None)


def _mentions(recipe: Document, key: VersionKey, version: str) -> list[str]:
    """Lines of the recipe that compare with a version that is no longer built."""
    digits = version.replace(".", "")
    words = (
        rf"{key.name}.*{re.escape(version)}(?![\d.])"
        if key is CUDA
        else rf"\bpy\s*[<>=!]+\s*{digits}\b|python.*{re.escape(version)}(?!\d)"
    )
    pattern = re.compile(words)
    return [
        f"{recipe.path.name}:{number} mentions {key.title} {version}: {line.strip()}"
        for number, line in enumerate(recipe.text.splitlines(), 1)
        if pattern.search(line) and "skip" not in line
    ]


def _in_scripts(draft: Draft, key: VersionKey, versions: Iterable[str]) -> list[str]:
    """The lines of the scripts of a recipe that name one of some versions beside a variable for it."""
    names = "cuda" if key is CUDA else "py_?ver|conda_py|python"
    spelled = "|".join(rf"{re.escape(each)}|{each.replace('.', '')}" for each in sorted(versions))
    pattern = re.compile(rf"(?i)(?:{names})(?=\w*[^\w/.-]).*?(?<![\w.])(?P<version>{spelled})(?![\w.])")
    return lines_with(draft, pattern, key.title) if spelled else []


def with_patches(draft: Draft, key: VersionKey, version: str) -> Draft:
    """List the patches in the recipe's folder that are named for a version and that the recipe does not mention yet.

    `patches/0006-add-python-3.14.patch`, `py314.diff` and `cuda130.patch` are named so. Each goes to the end of the
    list that has patches of its folder, else of the first list; a remark names it.

    Args:
        key: `CUDA` or `PYTHON`.
    """
    for patch in _patches_for(draft.recipe_path.parent, key, version):
        recipe = draft.recipe
        if PurePosixPath(patch).name not in recipe.text:
            listed = _listing(recipe, patch)
            outcome = "no source of the recipe lists it" if listed is None else "now it is among the recipe's patches"
            remark = f"{patch} is named for {key.title} {version}: {outcome}"
            draft = draft.with_document(listed or recipe).remarked(remark)
    return draft


def _patches_for(folder: Path, key: VersionKey, version: str) -> list[str]:
    """The paths of the patches below the folder of a recipe that are named for a version."""
    word = "cuda" if key is CUDA else "(?:py(?:thon)?|cp)"
    digits = version.replace(".", "")
    pattern = re.compile(
        rf"(?<![a-z0-9]){word}[-_]?{digits}(?![0-9a-z])|{word}.*(?<![\d.]){re.escape(version)}(?![.]?\d|[a-z])",
        re.IGNORECASE,
    )
    paths = {path for glob in _PATCHES for path in folder.glob(glob) if pattern.search(path.name)}
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _listing(recipe: Document, patch: str) -> Document | None:
    """The recipe with one more patch; None if it has no source outside of `{% if %}` that could have one."""
    lists = [entry.value for source in _sources(recipe) for entry in source.entries if entry.key == "patches"]
    lists = [list_ for list_ in lists if list_.items and not recipe.is_in_block(list_.items[-1].start)]
    folder = PurePosixPath(patch).parent
    beside = [list_ for list_ in lists if any(PurePosixPath(item.text).parent == folder for item in list_.items)]
    for list_ in (beside or lists)[:1]:
        return recipe.changed(added_item(recipe, list_, quoted_like(list_.items[-1], patch), sort=False))
    for source in _sources(recipe):
        if not (source.is_flow or recipe.is_in_block(source.start) or "patches" in source.members):
            return recipe.changed(added_entry(recipe, source, "patches", [f"  - {quoted_like(None, patch)}"]))
    return None


def _sources(recipe: Document) -> Iterator[Part]:
    """The sources of the recipe, each a mapping with an address or a path."""
    for entry in recipe.entries("source"):
        yield from (part for part in (entry.value, *entry.value.items) if part.entries and "if" not in part.members)
