"""Every edit of recipes, as a function and as words of the command, and the small pinning that they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.maintainers import add_maintainer, drop_maintainer
from feedstock_tools.edit.platforms import add_platform, set_provider
from feedstock_tools.edit.requirements import (
    Where,
    add_requirement,
    drop_requirement,
    limit_requirement,
    pin_requirement,
)
from feedstock_tools.edit.variants.lists import CUDA, PYTHON
from feedstock_tools.edit.variants.versions import add_version, drop_version
from feedstock_tools.edit.version import left_behind, raise_build_number, set_build_number, set_version
from feedstock_tools.enable_gpu import GpuWishes, enable_gpu
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.to_v1 import to_v1

OUTPUT = "libdemo"
GIVEN = {"c_compiler_version": "13", "cudnn": "9"}
WISHES = GpuWishes(("cublas",), (), ("linux-64",), "cpu", "both", "minor", metapackages=True, configure=("-DGPU=ON",))
WISHED = (
    *("--library", "cublas", "--platform", "linux-64", "--prefer", "cpu", "--by", "both", "--guard", "minor"),
    *("--metapackages", "--configure=-DGPU=ON"),
)
MIGRATION = "migrations/cuda130.yaml"
#: A small pinning: its lists, and migrations that add a version.
PINNING = {
    "conda_build_config.yaml": """\
zip_keys:
  - [cuda_compiler_version, c_compiler_version]
  - [python, numpy]
cuda_compiler_version:
  - None
  - 12.9  # [linux]
c_compiler_version:
  - 14
  - 14  # [linux]
python: [3.12.* *_cpython, 3.13.* *_cp313]
numpy: [2, 2]
c_stdlib_version: [2.17]
""",
    MIGRATION: """\
migrator_ts: 1
__migrator: {migration_number: 1, operation: key_add, primary_key: cuda_compiler_version}
cuda_compiler_version:  # [aarch64]
  - 13.0  # [aarch64]
c_compiler_version:  # [aarch64]
  - 15  # [aarch64]
""",
    "migrations/python314t.yaml": """\
migrator_ts: 2
__migrator: {migration_number: 1, operation: key_add, primary_key: python}
python: [3.14.* *_cp314t]
numpy: [2.3]
""",
}
DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}


def in_recipe(edit: Callable[[Document], Document]) -> Callable[[Draft], Draft]:
    """An edit of the recipe alone."""
    return lambda draft: draft.with_recipe(edit)


def new_version(recipe: Document) -> Document:
    """Another version, with what the command remarks on."""
    left_behind(recipe, "99.1")
    return set_version(recipe, "99.1", lambda _url, kind: "a" * DIGITS[kind])


def update(draft: Draft) -> Draft:
    """The same for one output, with another variable that changes."""
    recipe = set_version(
        draft.recipe, "99.1", lambda _url, kind: "a" * DIGITS[kind], output=OUTPUT, variables={"name": "other"}
    )
    return draft.with_document(recipe)


Edit = tuple[Callable[[Draft], Draft], tuple[str, ...]]


def edits(place: Path) -> tuple[Edit, ...]:
    """Each edit as a function and as words of the command; `place` has a pinning and a migration."""
    migration, folder, pinned = place / MIGRATION, place / "migrations", place / "conda_build_config.yaml"
    found = ("--pinning", str(place))
    given = [f"--with={key}={value}" for key, value in GIVEN.items()]
    return (
        (in_recipe(new_version), ("version", "99.1", "--sha256", "a" * 64)),
        (update, ("version", "99.1", "--of", OUTPUT, "--set", "name=other", *("--sha256", "a" * 64) * 3)),
        (in_recipe(lambda recipe: set_build_number(recipe, 7)), ("build-number", "7")),
        (in_recipe(raise_build_number), ("build-number", "+1")),
        (in_recipe(lambda recipe: add_maintainer(recipe, "zz-zz")), ("maintainer", "add", "zz-zz")),
        (in_recipe(lambda recipe: drop_maintainer(recipe, "h-vetinari")), ("maintainer", "drop", "h-vetinari")),
        *requirements(),
        (lambda draft: add_version(draft, CUDA, "12.9", folder, None, pinned), ("add-cuda", "12.9", *found)),
        (lambda draft: add_version(draft, CUDA, "12.9", None, GIVEN), ("add-cuda", "12.9", *given)),
        (lambda draft: add_version(draft, CUDA, "13.0", folder, None, pinned), ("add-cuda", "13.0", *found)),
        (
            lambda draft: add_version(draft, CUDA, "13.0", migration, GIVEN, pinned),
            ("add-cuda", "13.0", "--migration", str(migration), *given, *found),
        ),
        (lambda draft: drop_version(draft, CUDA, "12.9"), ("drop-cuda", "12.9")),
        (lambda draft: drop_version(draft, CUDA, "12.9", pinned), ("drop-cuda", "12.9", *found)),
        (lambda draft: add_version(draft, PYTHON, "3.13", None), ("add-python", "3.13")),
        (lambda draft: add_version(draft, PYTHON, "3.14t", folder, None, pinned), ("add-python", "3.14t", *found)),
        (
            lambda draft: add_version(draft, PYTHON, "3.13", None, {"numpy": "2"}),
            ("add-python", "3.13", "--with=numpy=2"),
        ),
        (lambda draft: drop_version(draft, PYTHON, "3.10"), ("drop-python", "3.10")),
        (lambda draft: drop_version(draft, PYTHON, "3.13t", pinned), ("drop-python", "3.13t", *found)),
        (lambda draft: add_platform(draft, "linux-aarch64"), ("platform", "add", "linux-aarch64")),
        (lambda draft: add_platform(draft, "osx-arm64", native=True), ("platform", "add", "osx-arm64", "--native")),
        (lambda draft: set_provider(draft, "win-64", "azure"), ("provider", "win-64", "azure")),
        (lambda draft: enable_gpu(draft, GpuWishes(), pinned), ("enable-gpu", *found)),
        (lambda draft: enable_gpu(draft, WISHES, pinned), ("enable-gpu", *WISHED, *found)),
        (to_v1, ("to-v1",)),
    )


def requirements() -> tuple[Edit, ...]:
    """The edits of requirements, of the whole recipe and of an output."""
    of_output = ("--section", "run", "--of", OUTPUT, "--if", "not win")
    some, every = Where("run", OUTPUT, "not win"), Where()
    return (
        (
            in_recipe(lambda recipe: add_requirement(recipe, "zz >=1", Where("run", None, "linux"))),
            ("requirement", "add", "zz >=1", "--section", "run", "--if", "linux"),
        ),
        (in_recipe(lambda recipe: add_requirement(recipe, "zz", some)), ("requirement", "add", "zz", *of_output)),
        (in_recipe(lambda recipe: drop_requirement(recipe, "python", every)), ("requirement", "drop", "python")),
        (
            in_recipe(lambda recipe: drop_requirement(recipe, "python", some)),
            ("requirement", "drop", "python", *of_output),
        ),
        (in_recipe(lambda recipe: pin_requirement(recipe, "pip >=9", every)), ("requirement", "pin", "pip >=9")),
        (
            in_recipe(lambda recipe: pin_requirement(recipe, "python", some)),
            ("requirement", "pin", "python", *of_output),
        ),
        (
            in_recipe(lambda recipe: limit_requirement(recipe, "python", Where(condition="linux"))),
            ("requirement", "limit", "python", "--if", "linux"),
        ),
        (
            in_recipe(lambda recipe: limit_requirement(recipe, "numpy", some)),
            ("requirement", "limit", "numpy", *of_output),
        ),
    )
