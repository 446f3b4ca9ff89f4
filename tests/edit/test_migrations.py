"""`edit migration`: a migration of the pinning is laid as conda-forge's bot lays it, and removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.edit.draft import open_draft
from feedstock_tools.edit.migrations import add_migration, drop_migration
from feedstock_tools.errors import InputError
from tests.support import command

RECIPE = "package:\n  name: demo\n  version: '1'\nbuild:\n  number: 4  # again\n"
MIGRATION = "__migrator:\n  build_number: 1\n  kind: version\n{bump}migrator_ts: 1\nzlib:\n- '1.4'   # new\n"


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    (tmp_path / "demo/recipe").mkdir(parents=True)
    (tmp_path / "demo/recipe/meta.yaml").write_text(RECIPE)
    (tmp_path / "pinning/migrations").mkdir(parents=True)
    (tmp_path / "pinning/conda_build_config.yaml").write_text("zlib:\n- '1.3'\n")
    for name, bump in (("zlib14", ""), ("quiet", "  bump_number: 0\n")):
        (tmp_path / f"pinning/migrations/{name}.yaml").write_text(MIGRATION.format(bump=bump))
    return tmp_path / "demo"


@pytest.mark.parametrize(("name", "number"), [("zlib14", "5"), ("quiet.yaml", "4")])
def test_a_migration_is_copied_and_the_build_number_raised_as_it_says(
    feedstock: Path, tmp_path: Path, name: str, number: str
) -> None:
    words = ("migration", "add", name, "--write", "--feedstock", str(feedstock), "--pinning", str(tmp_path / "pinning"))
    shown = command.run(command.tool("edit", *words), tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert (feedstock / "recipe/meta.yaml").read_text() == RECIPE.replace("4", number)
    file = f"migrations/{name.removesuffix('.yaml')}.yaml"
    assert (feedstock / ".ci_support" / file).read_bytes() == (tmp_path / "pinning" / file).read_bytes()


def test_it_is_added_once_and_removed(feedstock: Path, tmp_path: Path) -> None:
    source = tmp_path / "pinning/migrations"
    add_migration(open_draft(feedstock), "zlib14", source).changes().apply()
    with pytest.raises(InputError, match="has this migration already"):
        add_migration(open_draft(feedstock), "zlib14", source)
    drop_migration(open_draft(feedstock), "zlib14").changes().apply()
    assert list((feedstock / ".ci_support/migrations").glob("*.yaml")) == []


def test_a_name_that_neither_has_is_refused_with_the_nearest(feedstock: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no migration 'zlib1'") as refused:
        add_migration(open_draft(feedstock), "zlib1", tmp_path / "pinning/migrations")
    assert "zlib14" in str(refused.value)
    with pytest.raises(InputError, match="the feedstock has no migration 'zlib14'"):
        drop_migration(open_draft(feedstock), "zlib14")
    with pytest.raises(InputError, match="there is no pinning"):
        add_migration(open_draft(feedstock), "zlib14", None)


def test_the_build_number_of_a_shared_metapackage_stays(feedstock: Path, tmp_path: Path) -> None:
    recipe = RECIPE.replace("4  # again", "{{ build_number }}") + (
        "outputs:\n  - name: demo-proc\n    build:\n      number: {{ proc_build_number }}\n"
    )
    numbers = "{% set build_number = 3 %}\n{% set proc_build_number = 1 %}\n"
    (feedstock / "recipe/meta.yaml").write_text(numbers + recipe)
    draft = add_migration(open_draft(feedstock), "zlib14", tmp_path / "pinning/migrations")
    assert draft.recipe.text == numbers.replace("3", "4") + recipe
