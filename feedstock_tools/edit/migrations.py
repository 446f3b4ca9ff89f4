"""Migrations as conda-forge's bot makes them: a feedstock joins or leaves one, the pinning opens or closes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.versions import identity
from feedstock_tools.edit.version import raise_build_number
from feedstock_tools.edit.writing import added_item, removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.recipe.written.document import VARIANT_FILES, Document, Part, TextEdit, read_document
from feedstock_tools.wording import nearest

#: Where the feedstock of the pinning has its migrations.
_PINNED = Path("recipe/migrations")
_KEY = re.compile(r"[a-z_][a-z0-9_]*")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._*+!-]{0,63}")


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


def open_migration(draft: Draft, key: str, version: str, others: Mapping[str, str], at: float) -> Draft:
    """Open a migration in the feedstock of the pinning: a file that gives `key` another version.

    Args:
        others: versions of other keys that move with it.
        at: the seconds since 1970 that the bot orders migrations by.

    Raises:
        InputError: the pinning has no such key, or that migration already.
    """
    pinned = _pinned(draft)
    values = {key: version, **others}
    for name, value in values.items():
        if not (_KEY.fullmatch(name) and _VERSION.fullmatch(value)):
            raise InputError(f"'{name}={value}' is not a key of the pinning with a version", hint="Expected zlib=1.4.")
        if not any(entry.value.items for entry in pinned.entries(name)):
            keys = [entry.key for entry in (pinned.root.entries if pinned.root else ())]
            raise pinned.mistake(f"the pinning has no key '{name}'", hint=nearest(name, keys, "Add it first."))
    path = draft.folder / _PINNED / f"{key}{version.replace('.', '')}.yaml"
    if draft.document(path) is not None or path.exists():
        raise InputError("the pinning has this migration already", path=path)
    migrator = {"build_number": 1, "commit_message": f"Rebuild for {key} {version}", "kind": "version"}
    content = {"__migrator": {**migrator, "migration_number": 1}, "migrator_ts": at}
    content |= {name: [value] for name, value in values.items()}
    return draft.with_document(Document(path, yaml.safe_dump(content)))


def close_migration(draft: Draft, name: str) -> Draft:
    """Close a migration in the feedstock of the pinning: its values become the pinning's, and its file goes.

    Raises:
        InputError: there is no such migration, or the pinning has a list that it does not fit.
    """
    migration = _found(name, draft.folder / _PINNED)
    pinned = _pinned(draft)
    if migration.root is None:
        raise migration.mistake("the migration is empty")
    if operation := next(migration.entries("__migrator", "operation"), None):
        message = f"this migration has the operation {operation.value.text}: it does not replace the pinning's lists"
        raise migration.mistake(message, operation.value, "Close it by hand.")
    changes: list[TextEdit] = []
    for entry in migration.root.entries:
        if entry.value.items:
            changes += _taken(pinned, entry.key, migration, entry.value)
    return draft.with_script(migration).with_document(pinned.changed(changes)).without(migration.path)


def _pinned(draft: Draft) -> Document:
    document = draft.file(VARIANT_FILES[0])
    if document is None or not (draft.folder / _PINNED).is_dir():
        hint = "Expected a clone of conda-forge-pinning-feedstock, with recipe/migrations."
        raise InputError("this is not the feedstock of the pinning", path=draft.folder, hint=hint)
    return document


def _taken(pinned: Document, key: str, migration: Document, list_: Part) -> Iterator[TextEdit]:
    """The changes that give a list of the pinning the items of a migration."""
    lists = [entry.value for entry in pinned.entries(key)]
    if len(lists) != 1 or lists[0].kind != "sequence":
        raise migration.mistake(f"the pinning has {len(lists)} lists of '{key}'", list_, "Close it by hand.")
    own = lists[0]
    for old, new in zip(own.items, list_.items, strict=False):
        yield TextEdit(old.start, old.end, new.source)
    yield from removed_items(pinned, own, own.items[len(list_.items) :])
    for new in list_.items[len(own.items) :]:
        yield from added_item(pinned, own, new.source, sort=False)
