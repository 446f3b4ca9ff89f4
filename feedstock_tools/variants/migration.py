"""Migrations: files that change a pinning step by step (conda_smithy/variant_algebra.py).

A migration without an operation raises pins, never lowers them; `key_add` adds rows to a key and the keys zipped with
it, `key_remove` removes rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.variants.files import config_of, select_yaml
from feedstock_tools.variants.model import NO_VALUE, VariantConfig
from feedstock_tools.variants.rules import CondaBuildRules, MigrationRules
from feedstock_tools.versions import Version, parse_version

Values = tuple[str, ...]
_Row = TypeVar("_Row", str, Values)
#: The keys of a migration about itself; the others are those of a pinning.
OWN_KEYS = frozenset({"__migrator", "migrator_ts"})


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration for a platform: its variants, and how to apply them to a pinning."""

    config: VariantConfig
    timestamp: float = -1.0
    operation: str | None = None
    primary_keys: tuple[str, ...] = ()
    ordering: Mapping[str, Values] | None = None
    additional_zip_keys: tuple[str, ...] = ()
    path: Path | None = None

    def order_of(self, key: str) -> Values | None:
        """The migration's ordering of the values of `key`, if any."""
        return None if self.ordering is None else self.ordering.get(key)

    def fail(self, message: str, hint: str | None = None) -> InputError:
        """An error that names this migration."""
        return InputError(message, path=self.path, hint=hint)


def load_migration(
    path: Path,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    rules: CondaBuildRules | None = None,
    within: Path | None = None,
) -> Migration:
    """Read a migration file for a platform.

    Args:
        within: the folder that no link may lead out of, as for `reading.open_file`.

    Raises:
        InputError: it cannot be read or its `__migrator` section is invalid.
    """
    text = read_text(path, within=within)
    content, lines = select_yaml(text, path, platform, environ or {}, rules or CondaBuildRules())
    settings: Any = content.get("__migrator", {})
    if not isinstance(settings, dict):
        raise InputError("__migrator must be a mapping", path=path, line=lines.get("__migrator"))
    rest = {key: value for key, value in content.items() if key not in OWN_KEYS}
    try:
        timestamp = float(content.get("migrator_ts", -1.0))
    except (TypeError, ValueError) as error:
        raise InputError("migrator_ts must be a number", path=path, line=lines.get("migrator_ts")) from error
    operation = settings.get("operation")
    if operation not in (None, "key_add", "key_remove"):
        raise InputError(f"'{operation}' is not an operation", path=path, hint="Known operations: key_add, key_remove.")
    primary_keys = _listed(settings.get("primary_key", []))
    if operation is not None and len(primary_keys) != 1:
        raise InputError(f"{operation} must have one primary_key", path=path, line=lines.get("__migrator"))
    ordering = settings.get("ordering", {})
    if not isinstance(ordering, dict) or not all(isinstance(order, list) for order in ordering.values()):
        raise InputError("ordering must be a mapping of keys to lists of values", path=path)
    return Migration(
        config=config_of(rest, path, lines),
        timestamp=timestamp,
        operation=operation,
        primary_keys=primary_keys,
        ordering={key: tuple(order) for key, order in ordering.items()},
        additional_zip_keys=_listed(settings.get("additional_zip_keys", [])),
        path=path,
    )


def _listed(value: Any) -> Values:
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)


def migrate(
    config: VariantConfig, migrations: Sequence[Migration], rules: MigrationRules | None = None
) -> VariantConfig:
    """Apply migrations by their time stamps; those with the same one in the order in which they are given.

    Raises:
        InputError: a migration does not fit the pinning; names the migration.
    """
    chosen = rules or MigrationRules()
    for migration in sorted(migrations, key=lambda step: step.timestamp):
        if migration.operation == "key_add":
            config = _add(config, migration, chosen)
        elif migration.operation == "key_remove":
            config = _remove_row(config, migration)
        else:
            config = _raise_pins(config, migration, chosen)
        config = replace(config, origins=_origins(config, migration))
    return config


def _origins(config: VariantConfig, migration: Migration) -> dict[str, Any]:
    named = migration.config.origins
    return {**config.origins, **{key: (*config.origins.get(key, ()), *named[key]) for key in named}}


def _rank(value: str, order: Values | None, migration: Migration, key: str) -> Any:
    """The sort key of values: their place in the ordering, else their version, else the value itself."""
    if order is not None:
        if value not in order:
            raise migration.fail(
                f"the value '{value}' of '{key}' is not in the migration's ordering ({', '.join(order)})",
                hint=f"Add '{value}' to __migrator/ordering/{key}, or remove this migration.",
            )
        return order.index(value)
    try:
        return parse_version(value.replace(" ", ".").replace("*", "1"))
    except ValueError:
        return value


def _sorted(rows: set[_Row], value_of: Callable[[_Row], str], migration: Migration, key: str) -> list[_Row]:
    """Values of a key, or rows with one, by the value's rank."""
    order = migration.order_of(key)
    try:
        return sorted(sorted(rows), key=lambda row: _rank(value_of(row), order, migration, key))
    except TypeError as error:
        raise migration.fail(f"the values of '{key}' cannot be sorted") from error


def _newer(left: str, right: str, key: str, migration: Migration) -> str:
    first, second = (_rank(value, None, migration, key) for value in (left, right))
    if isinstance(first, Version) != isinstance(second, Version):
        raise migration.fail(f"the values '{left}' and '{right}' of '{key}' cannot be compared")
    return right if first < second else left


def _merged(key: str, left: Values, right: Values, migration: Migration, rules: MigrationRules) -> Values:
    """The newer value at each position, then the rest of the longer list; with an ordering, its last values."""
    order = migration.order_of(key)
    if order is None or not rules.merge_by_ordering:
        if order is None:
            newer = [_newer(first, second, key, migration) for first, second in zip(left, right, strict=False)]
        else:
            ranks = [
                (_rank(a, order, migration, key), _rank(b, order, migration, key))
                for a, b in zip(left, right, strict=False)
            ]
            newer = [order[max(pair)] for pair in ranks]
        return (*newer, *left[len(newer) :], *right[len(newer) :])
    places = sorted({_rank(value, order, migration, key) for value in (*left, *right)})
    longer = max(len(left), len(right))
    if len(places) < longer:
        if len(places) == 1:
            return (left[0],) * longer
        raise migration.fail(f"the values of '{key}' repeat, so its ordering does not determine which to use")
    return tuple(order[place] for place in places[-longer:])


def _add(config: VariantConfig, migration: Migration, rules: MigrationRules) -> VariantConfig:
    """`key_add`, for a primary key that the migration sets on this platform."""
    key = migration.primary_keys[0]
    if key not in migration.config.values:
        return config
    if key not in config.values:
        raise migration.fail(f"adds to '{key}', which the pinning does not have")
    return _add_rows(config, migration) if rules.add_whole_rows else _add_by_key(config, migration, rules)


def _add_rows(config: VariantConfig, migration: Migration) -> VariantConfig:
    """`key_add`: missing rows of the primary key's zip group are added and all are sorted."""
    new, key = migration.config.values, migration.primary_keys[0]
    group, zip_keys, joined = _widened(config, key, migration)
    values = dict(config.values)
    for member in joined:
        if len(values.get(member, ())) != 1:
            raise migration.fail(f"'{member}' cannot join the zip group of '{key}': it must have exactly one value")
        values[member] = values[member] * len(values[key])
    # A recipe's own file can leave a group with lists of different lengths, which the added rows then even out.
    former = rows = list(zip(*(values[member] for member in group), strict=False))
    for at in range(len(new[key])):
        lacking = [member for member in group if at >= len(new.get(member, ()))]
        if lacking:
            raise migration.fail(
                f"sets '{key}', which is zipped with {', '.join(lacking)}, but not these",
                hint="The pinning's zip group has changed since this migration was written.",
            )
        row = tuple(new[member][at] for member in group)
        if row not in rows:
            rows = _sorted({*rows, row}, itemgetter(group.index(key)), migration, key)
    if rows is not former:
        values.update({member: tuple(row[column] for row in rows) for column, member in enumerate(group)})
    _merge_ordered(values, config, migration, {key, *joined})
    return replace(config, values=values, zip_keys=zip_keys)


def _widened(
    config: VariantConfig, key: str, migration: Migration
) -> tuple[Values, tuple[Values, ...], frozenset[str]]:
    """The primary key's group with the additional keys, all groups with it changed, and the keys that joined."""
    extra = migration.additional_zip_keys
    old = next((group for group in config.zip_keys if key in group), None)
    if old is None:
        if not extra:
            return (key,), config.zip_keys, frozenset()
        group = (key, *extra)
        return group, (*config.zip_keys, group), frozenset(extra)
    joined = tuple(member for member in extra if member not in old)
    group = (*old, *joined)
    return group, tuple(group if zipped == old else zipped for zipped in config.zip_keys), frozenset(joined)


def _add_by_key(config: VariantConfig, migration: Migration, rules: MigrationRules) -> VariantConfig:
    """`key_add` before versions that compare whole rows: an existing value of the primary key adds nothing.

    A key that the migration does not set keeps its value if it joins the group; others get none.
    """
    new, key = migration.config.values, migration.primary_keys[0]
    zip_keys, joined = config.zip_keys, frozenset[str]()
    if rules.knows_additional_zip_keys:
        group, zip_keys, joined = _widened(config, key, migration)
    else:
        group = config.group_of(key)
    values = dict(config.values)
    alone = {member: values[member][0] for member in joined if values.get(member)}
    for at, value in enumerate(new[key]):
        old = values[key]
        if value in old:
            continue
        lacking = [member for member in group if at >= len(new.get(member, ())) and member not in alone]
        if lacking and not rules.knows_additional_zip_keys:
            raise migration.fail(f"sets '{key}', which is zipped with {', '.join(lacking)}, but not these")
        keys = _sorted({*old, value}, str, migration, key)
        for member in group:
            former = (alone[member],) * len(keys) if member in alone else values.get(member, ())
            column = [NO_VALUE] * len(keys)
            for place, present in enumerate(old[: len(former)]):
                column[keys.index(present)] = former[place]
            member_values = new.get(member, ())
            column[keys.index(value)] = member_values[at] if at < len(member_values) else alone.get(member, NO_VALUE)
            values[member] = tuple(column)
    if rules.orders_other_keys:
        _merge_ordered(values, config, migration, {key, *joined})
    return replace(config, values=values, zip_keys=zip_keys)


def _merge_ordered(
    values: dict[str, Values], config: VariantConfig, migration: Migration, handled: Collection[str]
) -> None:
    """Keys that have an ordering and are neither the primary key nor newly zipped are merged by it, in place."""
    new = migration.config.values
    for other in sorted((migration.ordering or {}).keys() - set(handled)):
        if other not in config.values or other not in new:
            raise migration.fail(f"orders '{other}', which {'it' if other not in new else 'the pinning'} does not set")
        values[other] = _merged(other, config.values[other], new[other], migration, MigrationRules())


def _remove_row(config: VariantConfig, migration: Migration) -> VariantConfig:
    key = migration.primary_keys[0]
    gone = migration.config.values.get(key)
    if gone is None or key not in config.values or gone[0] not in config.values[key]:
        return config
    if len(gone) != 1:
        raise migration.fail(f"key_remove can only remove one value of '{key}' at a time")
    old = config.values[key]
    left = [value for value in _sorted(set(old), str, migration, key) if value != gone[0]]
    places = [old.index(value) for value in left]
    changed = {member: tuple(config.values[member][place] for place in places) for member in config.group_of(key)}
    return config.with_values(changed)


def _raise_pins(config: VariantConfig, migration: Migration, rules: MigrationRules) -> VariantConfig:
    """No operation: keys on one side only are kept or added, common ones are merged key by key."""
    new = migration.config
    zip_keys = _merged_groups(config.zip_keys, new.zip_keys)
    joint = [key for key in config.values if key in new.values]
    merged: dict[str, Values] = {}
    for key in migration.primary_keys if rules.primary_key_chooses_rows else ():
        if key not in new.values:
            continue
        left, right = config.values.get(key, ()), new.values[key]
        merged[key] = _merged(key, left, right, migration, rules)
        group = next((group for group in (*config.zip_keys, *new.zip_keys) if key in group), ())
        chosen = [place for place, value in enumerate((*left, *right)) if value in merged[key]]
        for member in group:
            if member == key:
                continue
            if member not in config.values or member not in new.values:
                raise migration.fail(f"'{member}' is zipped with '{key}' and is not set on both sides")
            both = (*config.values[member], *new.values[member])
            merged[member] = tuple(both[place] for place in chosen if place < len(both))
    for key in joint:
        if key not in merged:
            merged[key] = _merged(key, config.values[key], new.values[key], migration, rules)
    return replace(
        config,
        values={**config.values, **new.values, **merged},
        zip_keys=zip_keys,
        pin_run_as_build={**config.pin_run_as_build, **new.pin_run_as_build},
        extended={**new.extended, **config.extended},
        mappings={**config.mappings, **new.mappings},
    )


def _merged_groups(left: tuple[Values, ...], right: tuple[Values, ...]) -> tuple[Values, ...]:
    """A group of the left side is replaced by a group of the right that contains it; then all are sorted."""
    if not left or not right:
        return left or right
    old_groups, new_groups = set(map(frozenset, left)), set(map(frozenset, right))
    taken: list[frozenset[str]] = []
    for new in sorted(new_groups, key=lambda group: (-len(group), sorted(group))):
        for old in sorted(old_groups, key=lambda group: (-len(group), sorted(group))):
            if old <= new:
                old_groups.remove(old)
                new_groups.remove(new)
                taken.append(new)
                break
    groups = (sorted(group) for group in (*taken, *old_groups, *new_groups))
    return tuple(tuple(group) for group in sorted(groups, key=lambda group: (len(group), str(group))))
