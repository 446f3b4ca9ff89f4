"""`edit pinning`, `setting`, `stdlib`, `python-min`, `noarch`, `license-file`: small changes as bots make them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from feedstock_tools.edit.draft import open_draft
from feedstock_tools.edit.migrations import close_migration, open_migration
from feedstock_tools.edit.platforms import drop_setting, set_setting
from feedstock_tools.errors import InputError
from tests.support import command

PINNING = "# ABI\nlibpng:\n  - 1.6\nopenmpi:\n  - 4\nzlib:\n  - '1.2'\n  - '1.3'\n"
MIGRATION = """\
__migrator:
  build_number: 1
  commit_message: Rebuild for openmpi 5
  kind: version
  migration_number: 1
migrator_ts: 1703196161.5
openmpi:
- '5'
zlib:
- 1.4.1
"""
RECIPE = """\
package:
  name: demo
  version: '1'

build:
  number: 0

requirements:
  build:
    - '{{ compiler("cxx") }}'
    - {{ compiler('c') }}         # [not win]
    - {{ compiler('m2w64_c') }}   # [win]
  host:
    - python >=3.6
  run:
    - python >=3.6,<4

test:
  imports:
    - demo

about:
  license: MIT
  summary: A demo
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe/migrations").mkdir(parents=True)
    (tmp_path / "recipe/meta.yaml").write_text(RECIPE)
    (tmp_path / "recipe/conda_build_config.yaml").write_text(PINNING)
    return tmp_path


def test_a_migration_is_opened_and_closed_in_the_pinning(folder: Path) -> None:
    opened = open_migration(open_draft(folder), "openmpi", "5", {"zlib": "1.4.1"}, 1703196161.5)
    opened.changes().apply()
    assert (folder / "recipe/migrations/openmpi5.yaml").read_text() == MIGRATION
    with pytest.raises(InputError, match="has this migration already"):
        open_migration(open_draft(folder), "openmpi", "5", {}, 1.0)
    close_migration(open_draft(folder), "openmpi5").changes().apply()
    closed = "# ABI\nlibpng:\n  - 1.6\nopenmpi:\n  - '5'\nzlib:\n  - 1.4.1\n"
    assert (folder / "recipe/conda_build_config.yaml").read_text() == closed
    assert not (folder / "recipe/migrations/openmpi5.yaml").exists()


def test_what_the_pinning_does_not_have_is_refused_with_the_nearest(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no key 'openmp'") as refused:
        open_migration(open_draft(folder), "openmp", "5", {}, 1.0)
    assert "openmpi" in str(refused.value)
    with pytest.raises(InputError, match="is not a key of the pinning with a version"):
        open_migration(open_draft(folder), "../zlib", "5", {}, 1.0)
    with pytest.raises(InputError, match="no migration 'zlib5'"):
        close_migration(open_draft(folder), "zlib5")
    (folder / "recipe/migrations/new.yaml").write_text("unpinned:\n- 1\n")
    with pytest.raises(InputError, match="0 lists of 'unpinned'"):
        close_migration(open_draft(folder), "new")
    (folder / "recipe/migrations/more.yaml").write_text("__migrator:\n  operation: key_add\nzlib:\n- 2\n")
    with pytest.raises(InputError, match="has the operation key_add"):
        close_migration(open_draft(folder), "more")
    (tmp_path / "recipe/conda_build_config.yaml").unlink()
    with pytest.raises(InputError, match="not the feedstock of the pinning"):
        open_migration(open_draft(folder), "zlib", "5", {}, 1.0)


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "bot.automerge", "true", "bot:\n  automerge: true\n"),
        ("bot:\n  automerge: true\n", "bot.automerge", "false", "bot:\n  automerge: false\n"),
        ("test: x\nbot:\n", "bot.automerge", "true", "test: x\nbot:\n  automerge: true\n"),
        ("azure:\n  a: 1\n", "azure.b.c", "'2'", "azure:\n  a: 1\n  b:\n    c: '2'\n"),
        ("z: 1\n", "a", "2", "z: 1\na: 2\n"),
        ("{}\n", "a.b.c", "2", "{a: {b: {c: 2}}}\n"),
        ("{a: {b: 1}}\n", "a.c", "2", "{a: {b: 1, c: 2}}\n"),
        ("a: 1\nb: {c: 2}  # c\nd: 3\n", "b.c", None, "a: 1\nd: 3\n"),
        ("a: 1\nb: {c: 2, d: 4}\n", "b.c", None, "a: 1\nb: {d: 4}\n"),
        ("b:\n  c:\n    d: 1\n  e: 2\n", "b.c.d", None, "b:\n  e: 2\n"),
    ],
)
def test_settings_are_set_at_the_end_and_dropped_with_empty_mappings(
    folder: Path, before: str, key: str, value: str | None, after: str
) -> None:
    (folder / "conda-forge.yml").write_text(before)
    draft = open_draft(folder)
    (drop_setting(draft, key) if value is None else set_setting(draft, key, value)).changes().apply()
    text = (folder / "conda-forge.yml").read_text()
    assert text == after
    assert isinstance(yaml.safe_load(text), dict)


def test_a_setting_that_is_not_there_or_no_mapping_is_refused(folder: Path) -> None:
    (folder / "conda-forge.yml").write_text("bot: yes\n")
    with pytest.raises(InputError, match=r"no setting 'bott'"):
        drop_setting(open_draft(folder), "bott")
    with pytest.raises(InputError, match="expected a mapping at bot"):
        set_setting(open_draft(folder), "bot.automerge", "true")


def test_several_small_edits_of_a_recipe_work_in_one_call(folder: Path) -> None:
    (folder / "pinning").mkdir()
    (folder / "pinning/conda_build_config.yaml").write_text("python_min:\n  - '3.9'\n")
    pinning = ("--pinning", str(folder / "pinning"))
    words = ("noarch", "python", "license-file", "LICENSE.txt", "python-min", *pinning, "stdlib", *pinning, "--write")
    done = command.run(
        command.tool("edit", *words, "setting", "set", "bot.automerge=true", "--feedstock", str(folder)), folder
    )
    assert done.returncode == 0, done.stderr
    compilers = RECIPE[RECIPE.index("    - '{{") : RECIPE.index("  host:")]
    with_stdlib = compilers.replace(
        "# [not win]\n", '# [not win]\n    - {{ stdlib("c") }}           # [not win]\n'
    ).replace("# [win]\n", '# [win]\n    - {{ stdlib("m2w64_c") }}     # [win]\n')
    expected = RECIPE.replace(compilers, with_stdlib)
    for old, new in (
        ("  number: 0\n", "  noarch: python\n  number: 0\n"),
        ("  license: MIT\n", "  license: MIT\n  license_file: LICENSE.txt\n"),
        ("    - python >=3.6\n", "    - python {{ python_min }}\n"),
        ("    - python >=3.6,<4\n", "    - python >={{ python_min }},<4\n"),
        ("  imports:\n", "  requires:\n    - python {{ python_min }}\n  imports:\n"),
    ):
        expected = expected.replace(old, new)
    assert (folder / "recipe/meta.yaml").read_text() == expected
    assert (folder / "conda-forge.yml").read_text() == "bot:\n  automerge: true\n"


def test_a_lower_bound_in_a_variable_gives_way_to_python_min(folder: Path) -> None:
    (folder / "pinning").mkdir()
    (folder / "pinning/conda_build_config.yaml").write_text("python_min:\n  - '3.9'\n")
    bounded = RECIPE.replace("    - python >=3.6\n", "    - python >={{ least }}  # why\n")
    head = '{% set least = "3.6" %}\n'
    (folder / "recipe/meta.yaml").write_text(head + bounded)
    words = ("noarch", "python", "python-min", "--pinning", str(folder / "pinning"), "--write")
    done = command.run(command.tool("edit", *words, "--feedstock", str(folder)), folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "recipe/meta.yaml").read_text()
    assert "    - python {{ python_min }}  # why\n" in text
    assert text.startswith(head)


@pytest.mark.parametrize(("written", "gives_way"), [("3.9", True), ("=3.9.*", True), ("3.10", False), (">3.9", False)])
def test_the_one_python_to_build_with_gives_way_to_python_min(folder: Path, written: str, gives_way: bool) -> None:
    (folder / "pinning").mkdir()
    (folder / "pinning/conda_build_config.yaml").write_text("python_min:\n  - '3.9'\n")
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("python >=3.6\n", f"python {written}\n"))
    words = ("noarch", "python", "python-min", "--pinning", str(folder / "pinning"), "--write")
    command.run(command.tool("edit", *words, "--feedstock", str(folder)), folder)
    text = (folder / "recipe/meta.yaml").read_text()
    assert (f"    - python {written}\n" not in text) == gives_way
    assert ("  host:\n    - python {{ python_min }}\n" in text) == gives_way
