"""Migrations of the pinning that a feedstock joins or leaves, as conda-forge's bot lays them."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.versions import identity
from feedstock_tools.edit.version import raise_build_number
from feedstock_tools.errors import InputError
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.wording import nearest


def add_migration(draft: Draft, name: str, migrations: Path | None) -> Draft:
    """Join a migration: copy it into `.ci_support/migrations`, and raise the build number as it says (by 1 if it
    does not).

    Args:
        name: that of its file, with or without `.yaml`.
        migrations: the folder of the pinning's migrations, or the file itself; None without a pinning.

    Raises:
        InputError: there is no such migration, or the feedstock has it as it is.
    """
    migration = _found(name, migrations)
    path = draft.folder / CI_SUPPORT / "migrations" / migration.path.name
    known = next((own for own in draft.migrations if own.path == path), None)
    if known is not None and identity(known) == identity(migration):
        raise InputError("the feedstock has this migration already", path=path)
    raised = _bump(migration)
    if raised:
        draft = draft.with_recipe(lambda recipe: raise_build_number(recipe, raised))
    return draft.with_document(Document(path, migration.text)).remarked(f"rerender to get the jobs of {path.name}")


def drop_migration(draft: Draft, name: str) -> Draft:
    """Leave a migration: remove it from `.ci_support/migrations`.

    Raises:
        InputError: the feedstock does not have it.
    """
    own = {migration.path.stem: migration.path for migration in draft.migrations}
    path = own.get(name.removesuffix(".yaml"))
    if path is None:
        raise InputError(f"the feedstock has no migration '{name}'", hint=nearest(name, own, "It has none."))
    return draft.without(path).remarked("rerender to get the jobs without it")


def _found(name: str, migrations: Path | None) -> Document:
    stem = name.removesuffix(".yaml")
    if migrations is None:
        hint = "Name the pinning's folder with --pinning, or the file with --migration."
        raise InputError(f"there is no pinning to take the migration '{stem}' from", hint=hint)
    if migrations.is_file():
        return read_document(migrations, within=None)
    known = {path.stem: path for path in sorted(migrations.glob("*.y*ml"))}
    if stem not in known:
        hint = nearest(stem, known, f"It has {len(known)} others.")
        raise InputError(f"the pinning has no migration '{stem}'", path=migrations, hint=hint)
    return read_document(known[stem], within=migrations)


def _bump(migration: Document) -> int:
    entry = next(migration.entries("__migrator", "bump_number"), None)
    if entry is None:
        return 1
    if not entry.value.text.isdecimal() or len(entry.value.text) > 4:
        raise migration.mistake("expected a whole number here", entry.value)
    return int(entry.value.text)
