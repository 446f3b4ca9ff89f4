"""Where a version of CUDA or Python comes from when it is added, and the values that go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.variants.lists import CUDA, PYTHON
from feedstock_tools.edit.variants.versions import add_version, drop_version
from feedstock_tools.errors import InputError
from tests.support.pinnings import write_pinning

RECIPE = "package:\n  name: demo\n  version: 1\nbuild:\n  number: 0\n  skip: true  # [{skip}]\n"
LISTS = """\
cuda_compiler_version:     # [linux]
  - None                   # [linux]
  - 12.6                   # [linux64]
  - 12.6                   # [aarch64]
c_compiler_version:        # [linux]
  - 13                     # [linux]
  - 13                     # [linux64]
  - 13                     # [aarch64]
"""
MIGRATION = """\
migrator_ts: 1
__migrator:
  migration_number: 1
  operation: key_add
  ordering:
    cuda_compiler_version: [None, 12.9, 13.0]
cuda_compiler_version:     # [linux]
  - 13.0                   # [linux]
c_compiler_version:        # [linux]
  - 14                     # [linux]
"""
#: One that does not add a version: it has all of them, for another platform.
WINDOWS = "cuda_compiler_version:\n  - None\n  - 12.9\n  - 13.0\n"
PINNING = """\
zip_keys:
  - - cuda_compiler_version
    - docker_image
cuda_compiler_version:
  - None
  - 12.9                   # [linux]
docker_image:              # [linux]
  - image:plain            # [linux]
  - image-cuda:12.9        # [linux]
"""


def feedstock(folder: Path, skip: str = "win", **files: str) -> Draft:
    """A feedstock with variant files and migrations: `lists`, or the names of migrations."""
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE.format(skip=skip))
    for name, text in files.items():
        path = folder / ("recipe/conda_build_config.yaml" if name == "lists" else f".ci_support/migrations/{name}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return open_draft(folder)


def of_recipe(folder: Path, recipe: str) -> Draft:
    """A feedstock of a `meta.yaml` alone."""
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(recipe)
    return open_draft(folder)


def pinning(folder: Path, text: str = PINNING, **migrations: str) -> tuple[Path, Path]:
    """The folder of a pinning's migrations, and its variant file."""
    write_pinning(folder, text, **migrations)
    return folder / "migrations", folder / "conda_build_config.yaml"


def written(draft: Draft, name: str) -> str:
    """The text of a file of a draft."""
    document = draft.file(name)
    return "" if document is None else document.text


def test_a_version_is_added_for_each_selector_of_its_neighbour(tmp_path: Path) -> None:
    draft = add_version(feedstock(tmp_path / "f", lists=LISTS), CUDA, "12.9", None, {"c_compiler_version": "14"})
    lines = written(draft, "recipe/conda_build_config.yaml").splitlines()
    assert [line.split() for line in lines if "12.9" in line or "14" in line] == [
        ["-", version, "#", f"[{platform}]"] for version in ("12.9", "14") for platform in ("linux64", "aarch64")
    ]
    assert draft.remarks == ()  # nothing was copied from a neighbour


def test_a_value_of_a_key_that_is_not_zipped_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cudnn is not listed beside cuda_compiler_version here"):
        add_version(feedstock(tmp_path / "f", lists=LISTS), CUDA, "12.9", None, {"cudnn": "9"})


def test_a_migration_with_other_values_is_the_feedstocks_own(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", windows_cuda=WINDOWS, cuda130=MIGRATION)
    draft = add_version(
        feedstock(tmp_path / "f"), CUDA, "13.0", folder, {"c_compiler_version": "13", "cudnn": "9"}, config
    )
    expected = MIGRATION.replace("- 14 ", "- 13 ").replace(
        "  migration_number", "  use_local: true\n  migration_number"
    )
    assert written(draft, ".ci_support/migrations/cuda130.yaml") == expected.replace(
        "c_compiler_version:", "cudnn:\n  - 9  # [linux]\nc_compiler_version:"
    )
    assert draft.remarks[0].startswith("cuda130.yaml is the feedstock's own")


def test_a_migration_that_the_pinning_does_not_have_is_kept_as_the_feedstocks_own(tmp_path: Path) -> None:
    path = tmp_path / "cuda130.yaml"
    path.write_text(MIGRATION)
    draft = add_version(feedstock(tmp_path / "f"), CUDA, "13.0", path)
    assert "  use_local: true\n" in written(draft, ".ci_support/migrations/cuda130.yaml")
    with pytest.raises(InputError, match="does not add it"):
        add_version(feedstock(tmp_path / "g"), CUDA, "13.1", path)


def test_a_migration_is_added_beside_other_migrations_even_if_the_recipe_lists_versions(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", cuda130=MIGRATION)
    draft = feedstock(tmp_path / "f", lists=LISTS, cuda129=MIGRATION.replace("- 13.0", "- 12.9"))
    added = add_version(draft, CUDA, "13.0", folder, None, config)
    assert added.changes().listed() == (("add", ".ci_support/migrations/cuda130.yaml"),)


def test_the_pinnings_lists_are_copied_if_no_migration_adds_the_version(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", windows_cuda=WINDOWS)
    draft = add_version(feedstock(tmp_path / "f", lists="mpi:\n  - nompi\n"), CUDA, "13.0", folder, None, config)
    lists = PINNING[PINNING.index("cuda_compiler_version:\n") :].replace("docker_image:", "\ndocker_image:")
    lists = lists.replace(
        "- 12.9                   # [linux]\n",
        "- 12.9                   # [linux]\n  - 13.0                   # [linux]\n",
    )
    image = "- image-cuda:12.9        # [linux]\n"
    assert written(draft, "recipe/conda_build_config.yaml") == (
        "mpi:\n  - nompi\n" + lists.replace(image, f"{image}  {image.replace('12.9', '13.0')}")
    )
    assert draft.remarks[0].startswith("no migration adds CUDA 13.0: the pinning's lists are copied")


def test_a_version_that_the_pinning_lists_is_not_listed_again(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p")
    with pytest.raises(InputError, match="no migration of the pinning adds it"):
        add_version(feedstock(tmp_path / "f"), CUDA, "12.9", folder, None, config)


def test_lists_of_the_pinning_that_would_not_fit_each_other_are_not_copied(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", PINNING.replace("- image-cuda", "- other\n  - image-cuda"))
    with pytest.raises(InputError, match="no migration of the pinning adds it"):
        add_version(feedstock(tmp_path / "f"), CUDA, "13.0", folder, None, config)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('win and cuda_compiler_version not in ("None", "12.6")', '("None", "12.6", "12.9")'),
        ('cuda_compiler_version not in ("None",)', '("None", "12.9")'),
    ],
)
def test_a_skip_of_all_but_some_versions_gets_the_version(tmp_path: Path, before: str, after: str) -> None:
    draft = add_version(feedstock(tmp_path / "f", before), CUDA, "12.9", None)
    assert f"not in {after}]" in draft.recipe.text
    assert "the pinning must have CUDA 12.9" in draft.remarks[0]


def test_a_skip_is_not_all_if_the_pinning_does_not_have_the_version(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", "cuda_compiler_version:\n  - None\n  - 12.6\n")
    own = feedstock(
        tmp_path / "f", 'cuda_compiler_version not in ("None", "12.6")', cuda129=MIGRATION.replace("3.0", "2.9")
    )
    with pytest.raises(InputError, match="no migration of the pinning adds it") as error:
        add_version(own, CUDA, "13.0", folder, None, config)
    assert "--migration" in str(error.value)


def test_values_have_no_place_where_a_skip_alone_goes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no values go with it"):
        add_version(feedstock(tmp_path / "f", 'cuda_compiler_version == "12.9"'), CUDA, "12.9", None, {"cudnn": "9"})


def test_one_of_several_versions_of_a_migration_leaves_it_to_the_others(tmp_path: Path) -> None:
    several = "cuda_compiler_version:\n  - 12.6\n  - 12.9\nc_compiler_version:\n  - 13\n  - 14\n"
    draft = drop_version(feedstock(tmp_path / "f", cuda126_129=several), CUDA, "12.6")
    assert written(draft, ".ci_support/migrations/cuda126_129.yaml") == (
        "cuda_compiler_version:\n  - 12.9\nc_compiler_version:\n  - 14\n"
    )


def test_comments_tell_which_values_go_with_a_version(tmp_path: Path) -> None:
    lists = """\
cuda_compiler_version:
  - None
  - 11.5  # [linux64 or (linux and linux and aarch64)]
cudnn:
  - undefined  # [linux64]
  - 8          # [linux64]  # CUDA 11.5
  - undefined  # [linux and aarch64]
  - 7          # [linux and aarch64]  # CUDA 11.5
"""
    draft = add_version(feedstock(tmp_path / "f", lists=lists), CUDA, "11.6", None)
    lines = [line for line in written(draft, "recipe/conda_build_config.yaml").splitlines() if "11.6" in line]
    assert lines == [
        "  - 11.6  # [linux64 or (linux and linux and aarch64)]",
        "  - 8          # [linux64]  # CUDA 11.6",
        "  - 7          # [linux and aarch64]  # CUDA 11.6",
    ]


PYTHONS = """\
python:
  - 3.13.* *_cp313
  - 3.13.* *_cp313t
numpy:
  - 2
  - 2.1
"""
PYTHON_MIGRATION = """\
migrator_ts: 5
__migrator: {migration_number: 1, operation: key_add, primary_key: python}
python:
  - 3.14.* *_cp314t
numpy:
  - 2.3
"""


def test_python_without_the_lock_is_a_version_of_its_own(tmp_path: Path) -> None:
    draft = add_version(feedstock(tmp_path / "f", lists=PYTHONS), PYTHON, "3.14t", None)
    assert written(draft, "recipe/conda_build_config.yaml") == (
        PYTHONS.replace("cp313t\n", "cp313t\n  - 3.14.* *_cp314t\n") + "  - 2.1\n"
    )
    dropped = drop_version(draft, PYTHON, "3.13t")
    assert "cp313t" not in written(dropped, "recipe/conda_build_config.yaml")
    assert "cp313\n" in written(dropped, "recipe/conda_build_config.yaml")
    with pytest.raises(InputError, match=r"no skip can name python 3\.12t alone"):
        drop_version(draft, PYTHON, "3.12t")


def test_values_of_the_pinnings_migration_go_before_those_of_the_neighbour(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", python314t=PYTHON_MIGRATION)
    draft = add_version(feedstock(tmp_path / "f", lists=PYTHONS), PYTHON, "3.14t", folder, None, config)
    assert written(draft, "recipe/conda_build_config.yaml").endswith("  - 2.1\n  - 2.3\n")


def test_a_migration_that_is_named_for_a_version_may_order_other_keys(tmp_path: Path) -> None:
    old = "__migrator:\n  ordering:\n    c_compiler_version: [9, 7]\ncuda_compiler_version:\n  - None\n  - 11.0\n"
    folder, config = pinning(tmp_path / "p", cuda110=old)
    draft = add_version(feedstock(tmp_path / "f"), CUDA, "11.0", folder, None, config)
    assert written(draft, ".ci_support/migrations/cuda110.yaml") == old


def test_a_migration_of_an_earlier_round_gives_way_to_the_pinnings(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", cuda130=MIGRATION.replace("migration_number: 1", "migration_number: 2"))
    draft = add_version(feedstock(tmp_path / "f", cuda130=MIGRATION), CUDA, "13.0", folder, None, config)
    assert "migration_number: 2" in written(draft, ".ci_support/migrations/cuda130.yaml")
    assert draft.remarks[0].startswith("cuda130.yaml is of an earlier round")
    with pytest.raises(InputError, match=r"adds CUDA 13\.0 already"):
        add_version(draft, CUDA, "13.0", folder, None, config)


ARMED = MIGRATION.replace("[linux]", "[aarch64]")


@pytest.mark.parametrize(
    ("skip", "listed", "expected"),
    [
        ('(win or linux64) and {key} not in ("None", "12.9")', "linux", "{skip}"),
        ('linux and {key} not in ("None", "12.9")', "osx", 'linux and {key} not in ("None", "12.9", "13.0")'),
        (
            'linux and {key} not in ("None", "12.9")',
            "linux64",
            '{skip} and not ({key} == "13.0" and linux and aarch64)',
        ),
        (
            'osx or {key} not in ("None", "12.9")',
            "linux64",
            '({skip}) and not ({key} == "13.0" and linux and aarch64)',
        ),
    ],
)
def test_a_skip_is_changed_for_the_platforms_of_the_migration_alone(
    tmp_path: Path, skip: str, listed: str, expected: str
) -> None:
    pinned = f"cuda_compiler_version:\n  - None\n  - 13.0  # [{listed}]\n"
    folder, config = pinning(tmp_path / "p", pinned, cuda130=ARMED)
    skip = skip.format(key="cuda_compiler_version")
    draft = add_version(feedstock(tmp_path / "f", skip), CUDA, "13.0", folder, None, config)
    condition = expected.format(skip=skip, key="cuda_compiler_version")
    assert f"  skip: true  # [{condition}]\n" in draft.recipe.text


def test_lists_of_versions_in_other_selectors_get_the_version_after_its_neighbour(tmp_path: Path) -> None:
    folder, config = pinning(tmp_path / "p", cuda130=MIGRATION)
    text = RECIPE + (
        "requirements:\n  host:\n"
        '    - cutensor  # [cuda_compiler_version in ("12.6", "12.9")]\n'
        '    - cudnn 8   # [cuda_compiler_version in ("11.2", "11.8")]\n'
        '    - nccl      # [cuda_compiler_version in ("12.9",)]\n'
    )
    draft = add_version(of_recipe(tmp_path / "f", text.format(skip="win")), CUDA, "13.0", folder, None, config)
    assert draft.recipe.text == text.format(skip="win").replace('"12.6", "12.9"', '"12.6", "12.9", "13.0"')
    assert draft.remarks[-1].startswith("meta.yaml:9 names 13.0 too")


OUTPUTS = """\
package:
  name: demo
  version: 1
build:
  number: 0
  skip: true  # [{skip}]
outputs:
  - name: demo-core
    build:
      skip: true  # [{skip}]
  - name: demo-cpu
    build:
      skip: true  # [cuda_compiler_version not in ("None",)]
  - name: demo-extra
    build:
      skip: true  # [win]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('ppc64le or {key} not in ("None", "12.9")', 'ppc64le or {key} not in ("None", "12.9", "13.0")'),
        ('ppc64le or {key} == "13.0"', "ppc64le"),
    ],
)
def test_the_skips_of_outputs_change_with_that_of_the_recipe(tmp_path: Path, before: str, after: str) -> None:
    folder, config = pinning(tmp_path / "p", "cuda_compiler_version:\n  - None\n  - 12.9\n", cuda130=MIGRATION)
    old, new = (OUTPUTS.format(skip=skip.format(key="cuda_compiler_version")) for skip in (before, after))
    assert add_version(of_recipe(tmp_path / "f", old), CUDA, "13.0", folder, None, config).recipe.text == new


@pytest.mark.parametrize(
    ("skip", "gets_it"),
    [
        ('win and {key} in ("12.6", "12.9")', True),
        ('win and {key} in ("12.6",)', False),  # Windows builds 12.9
        ('win and {key} in (undefined, "None", "12.6", "12.9")', False),  # Windows builds nothing
        ('{key} in ("12.6", "12.9")', False),  # nothing would build the version
    ],
)
def test_a_platform_whose_versions_are_all_skipped_does_not_get_a_new_one(
    tmp_path: Path, skip: str, gets_it: bool
) -> None:
    both = "cuda_compiler_version:\n  - None\n  - 12.6  # [linux or win]\n  - 12.9  # [linux or win]\n"
    folder, config = pinning(tmp_path / "p", both, cuda130=MIGRATION.replace("[linux]", "[linux or win]"))
    before = RECIPE.format(skip=skip.format(key="cuda_compiler_version"))
    draft = add_version(of_recipe(tmp_path / "f", before), CUDA, "13.0", folder, None, config)
    assert draft.recipe.text == (before.replace('"12.9")', '"12.9", "13.0")') if gets_it else before)
    assert gets_it == any("a skip names each cuda_compiler_version" in remark for remark in draft.remarks)


def test_a_version_goes_beside_the_newest_that_is_older(tmp_path: Path) -> None:
    lists = (
        "cuda_compiler_version:\n  - 12.6\n  - 12.9\n\n  - 12.6\nc_compiler_version:\n  - 13\n  - 14\n\n  - 12\n"
        "zip_keys:\n  - - cuda_compiler_version\n    - c_compiler_version\n"
    )
    draft = add_version(feedstock(tmp_path / "f", lists=lists), CUDA, "13.0", None)
    assert written(draft, "recipe/conda_build_config.yaml") == lists.replace("- 12.9\n", "- 12.9\n  - 13.0\n").replace(
        "- 14\n", "- 14\n  - 14\n"
    )


@pytest.mark.parametrize(("oldest", "skip"), [("3.9", "win or py<310"), ("3.10", "win")])
def test_a_limit_goes_where_no_older_python_is_left(tmp_path: Path, oldest: str, skip: str) -> None:
    folder, config = pinning(tmp_path / "p", f"python:\n  - {oldest}.* *_cpython\n  - 3.11.* *_cpython\n")
    draft = add_version(feedstock(tmp_path / "f", "win or py<311"), PYTHON, "3.10", folder, None, config)
    assert draft.recipe.text == RECIPE.format(skip=skip)
