"""Migrations that add a version: the pinning's, and one that a feedstock keeps as its own, with values other than the
pinning's or before the pinning has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from feedstock_tools.edit.variants.lists import listing, versions_in
from feedstock_tools.edit.writing import added_entry, quoted_like, replaced
from feedstock_tools.recipe.written.document import Document, TextEdit, read_document, selector_in


def is_about(migration: Document, key: str) -> bool:
    """Whether a migration is about versions of a key: its ordering is for the key, or it has no ordering."""
    ordering = [entry for entry in migration.entries("__migrator", "ordering") if entry.value.entries]
    about = not ordering or any(ordered.key == key for entry in ordering for ordered in entry.value.entries)
    return about and bool(versions_in(migration, key))


def adds_version(migration: Document, key: str, version: str) -> bool:
    """Whether the purpose of a migration is to add a version: it lists no other, or the file is named for it.

    One that lists all versions changes what is zipped with them, such as the platforms, unless it is named for the key
    too (`cuda110.yaml`).
    """
    if listing(migration, key, version) is None:
        return False
    digits = version.replace(".", "")
    if re.fullmatch(rf"{key.partition('_')[0]}[_-]?{digits}", migration.path.stem):
        return True
    return is_about(migration, key) and (len(versions_in(migration, key)) == 1 or digits in migration.path.stem)


def pinned_migration(source: Path | None, key: str, version: str) -> Document | None:
    """The migration that adds a version; in a folder, the first one, with those that are named for it before others.

    Args:
        source: the folder of the pinning's migrations, or the file of one; None without a pinning.
    """
    if source is None:
        return None
    if not source.is_dir():
        document = read_document(source, within=None)
        return document if adds_version(document, key, version) else None
    digits = version.replace(".", "")
    for path in sorted(source.glob("*.y*ml"), key=lambda path: (digits not in path.stem, path.name)):
        document = read_document(path, within=source)
        if key in document.text and adds_version(document, key, version):
            return document
    return None


def is_own(migration: Document) -> bool:
    """Whether a rerender keeps a migration as the feedstock has it."""
    return any(entry.value.text.lower() == "true" for entry in migration.entries("__migrator", "use_local"))


def identity(migration: Document) -> tuple[str, str]:
    """The values by which a rerender identifies a migration: its time stamp, and the number of its round."""
    number = (*migration.entries("__migrator", "migration_number"), None)[0]
    stamp = (*migration.entries("migrator_ts"), None)[0]
    return stamp.value.text if stamp else "", number.value.text if number else ""


def own_migration(migration: Document, key: str, values: Mapping[str, str]) -> Document:
    """A migration with other values, and with `use_local: true`, so that a rerender keeps it as it is.

    Args:
        key: the key whose version it adds.
        values: for other keys; a key that the migration lacks is added below the version, with its selector.

    >>> text = "__migrator: {migration_number: 1}\\ncuda_compiler_version:\\n  - 13.0\\nc_compiler_version:\\n  - 14\\n"
    >>> migration = Document(Path("cuda130.yaml"), text)
    >>> own_migration(migration, "cuda_compiler_version", {"c_compiler_version": "13"}).text.splitlines()[-1]
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
