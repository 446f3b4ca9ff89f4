"""Migrations: their effect on a pinning, and when they do not fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.migration import Migration, load_migration, migrate
from feedstock_tools.variants.model import VariantConfig, explode
from feedstock_tools.variants.rules import MigrationRules

LINUX = Platform("linux", "64")
PINNING = VariantConfig(
    values={
        "cuda_compiler_version": ("None", "12.9"),
        "c_compiler_version": ("14", "13"),
        "openssl": ("3.5",),
        "python": ("3.12", "3.13"),
        "channel_sources": ("conda-forge",),
    },
    zip_keys=(("c_compiler_version", "cuda_compiler_version"),),
    pin_run_as_build={"openssl": {"max_pin": "x"}},
)
CUDA13: dict[str, Any] = {
    "migrator_ts": 1,
    "__migrator": {
        "operation": "key_add",
        "primary_key": "cuda_compiler_version",
        "ordering": {"cuda_compiler_version": ["12.9", "None", "13.0"]},
    },
    "cuda_compiler_version": ["13.0"],
    "c_compiler_version": ["14"],
}


def written(folder: Path, content: dict[str, Any], name: str = "migration.yaml") -> Migration:
    import yaml

    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return load_migration(path, LINUX)


def test_key_add_adds_whole_rows_in_the_migrations_order(tmp_path: Path) -> None:
    migrated = migrate(PINNING, [written(tmp_path, CUDA13)])

    assert migrated.values["cuda_compiler_version"] == ("12.9", "None", "13.0")
    assert migrated.values["c_compiler_version"] == ("13", "14", "14")


def test_key_add_takes_nothing_else_of_the_migration(tmp_path: Path) -> None:
    assert migrate(PINNING, [written(tmp_path, {**CUDA13, "openssl": ["9"]})]).values["openssl"] == ("3.5",)


def test_a_row_that_is_there_is_not_added_again(tmp_path: Path) -> None:
    again = [written(tmp_path, CUDA13), written(tmp_path, {**CUDA13, "migrator_ts": 2}, "again.yaml")]

    assert migrate(PINNING, again).values == migrate(PINNING, again[:1]).values


def test_additional_keys_join_the_group_with_the_value_they_had(tmp_path: Path) -> None:
    content = {
        "__migrator": {"operation": "key_add", "primary_key": "python", "additional_zip_keys": ["channel_sources"]},
        "python": ["3.14"],
        "channel_sources": ["conda-forge/label/rc"],
    }

    migrated = migrate(PINNING, [written(tmp_path, content)])

    assert ("python", "channel_sources") in migrated.zip_keys
    assert migrated.values["channel_sources"] == ("conda-forge", "conda-forge", "conda-forge/label/rc")


def test_key_remove_takes_the_row_away(tmp_path: Path) -> None:
    content = {
        "__migrator": {"operation": "key_remove", "primary_key": "cuda_compiler_version"},
        "cuda_compiler_version": ["12.9"],
    }

    migrated = migrate(PINNING, [written(tmp_path, content)])

    assert (migrated.values["cuda_compiler_version"], migrated.values["c_compiler_version"]) == (("None",), ("14",))


@pytest.mark.parametrize(("given", "left"), [("4", ("4",)), ("3.0", ("3.5",)), ("3.5.0", ("3.5",))])
def test_a_plain_migration_raises_pins_and_never_lowers_them(tmp_path: Path, given: str, left: tuple[str, ...]) -> None:
    assert migrate(PINNING, [written(tmp_path, {"openssl": [given]})]).values["openssl"] == left


def test_a_plain_migration_brings_new_keys_and_enforces_its_pins(tmp_path: Path) -> None:
    content = {"fresh": ["1", "2"], "pin_run_as_build": {"openssl": {"max_pin": "x.x"}}}

    migrated = migrate(PINNING, [written(tmp_path, content)])

    assert migrated.values["fresh"] == ("1", "2")
    assert migrated.pin_run_as_build["openssl"] == {"max_pin": "x.x"}


def test_time_stamps_decide_the_order_and_not_the_order_given(tmp_path: Path) -> None:
    first = written(
        tmp_path, {"migrator_ts": 1, "__migrator": {"ordering": {"openssl": ["4", "3.5"]}}, "openssl": ["3.5"]}
    )
    second = written(tmp_path, {"migrator_ts": 2, "openssl": ["4"]}, "second.yaml")

    assert migrate(PINNING, [first, second]).values == migrate(PINNING, [second, first]).values


def test_older_versions_compare_the_primary_key_alone(tmp_path: Path) -> None:
    other_row = {**CUDA13, "cuda_compiler_version": ["12.9"], "c_compiler_version": ["15"]}
    old = MigrationRules(add_whole_rows=False)

    assert len(migrate(PINNING, [written(tmp_path, other_row)]).values["cuda_compiler_version"]) == 3
    assert migrate(PINNING, [written(tmp_path, other_row)], old).values == PINNING.values


def test_between_3_26_and_3_54_a_row_of_a_part_of_the_group_makes_no_variant(tmp_path: Path) -> None:
    part = {key: value for key, value in CUDA13.items() if key != "c_compiler_version"}

    migrated = migrate(PINNING, [written(tmp_path, part)], MigrationRules(add_whole_rows=False))

    assert set(explode(migrated).values("cuda_compiler_version")) == {"None", "12.9"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"__migrator": {**CUDA13["__migrator"], "ordering": {"cuda_compiler_version": ["13.0"]}}}, "ordering"),
        ({"c_compiler_version": None}, "zipped with c_compiler_version"),
        ({"__migrator": {"operation": "key_add", "primary_key": "unheard_of"}, "unheard_of": ["1"]}, "does not have"),
        ({"__migrator": {"operation": "multiply"}}, "is not an operation"),
        ({"migrator_ts": "yesterday"}, "must be a number"),
    ],
)
def test_migrations_that_do_not_fit_are_refused_by_name(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    content = {key: value for key, value in {**CUDA13, **change}.items() if value is not None}

    with pytest.raises(InputError, match=message) as caught:
        migrate(PINNING, [written(tmp_path, content)])

    assert caught.value.mistakes[0].path == tmp_path / "migration.yaml"


def test_of_several_keys_that_do_not_fit_the_first_by_name_is_refused(tmp_path: Path) -> None:
    keys = [f"library_{letter}" for letter in "qwertzuiopasdfghjkl"]  # a set of strings is in no order
    settings = {**CUDA13["__migrator"], "ordering": {key: ["1"] for key in keys}}
    with pytest.raises(InputError, match="orders 'library_a', which it does not set"):
        migrate(PINNING, [written(tmp_path, {**CUDA13, "__migrator": settings})])
