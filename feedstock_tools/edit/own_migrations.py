"""A migration that a feedstock keeps as its own: with other values than the pinning's, or before the pinning has it."""

from __future__ import annotations

from collections.abc import Mapping

from feedstock_tools.edit.document import Change, Document, selector_in
from feedstock_tools.edit.writing import added_entry, quoted_like, replaced

__all__ = ["own_migration"]


def own_migration(migration: Document, key: str, values: Mapping[str, str]) -> Document:
    """A migration with other values, and with `use_local: true`, so that a rerender keeps it as it is.

    Args:
        key: the key whose version it adds.
        values: for other keys; one that the migration has not is added below the version, with its selector.

    >>> text = "__migrator: {migration_number: 1}\\ncuda_compiler_version:\\n  - 13.0\\nc_compiler_version:\\n  - 14\\n"
    >>> migration = Document(Path("cuda130.yaml"), text)
    >>> own_migration(migration, "cuda_compiler_version", {"c_compiler_version": "13"}).text.splitlines()[-1]
    '  - 13'
    """
    changes: list[Change] = _kept(migration)
    for name, value in values.items():
        found = [entry for entry in migration.entries(name) if entry.value.items]
        for entry in found:
            changes += [change for item in entry.value.items for change in replaced(migration, item, value)]
        if not found and migration.root is not None:
            at = [entry for entry in migration.entries(key) if entry.value.items][-1]
            item = at.value.items[-1]
            lead = migration.text[migration.line_start(item.start) : item.start]
            selector = selector_in(migration.comment_after(item))
            line = f"{lead}{quoted_like(item, value)}{f'  # [{selector}]' if selector else ''}"
            changes += added_entry(migration, migration.root, name, [line], at)
    return migration.changed(changes)


def _kept(migration: Document) -> list[Change]:
    """Set `use_local`, at the top of what says how the migration works."""
    for entry in migration.entries("__migrator", "use_local"):
        return replaced(migration, entry.value, "true")
    for entry in migration.entries("__migrator"):
        if entry.value.is_flow:
            at = entry.value.start + 1
            return [Change(at, at, "use_local: true, ")]
        if entry.value.entries:
            first = entry.value.entries[0]
            lead = " " * migration.column_of(first.start)
            start = migration.line_start(first.start)
            return [Change(start, start, f"{lead}use_local: true{migration.newline}")]
    return [Change(0, 0, f"__migrator:{migration.newline}  use_local: true{migration.newline}")]
