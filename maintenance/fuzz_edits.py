"""Edit cut and otherwise damaged recipes with every edit, and report those that an edit neither changes nor refuses.

    python -m maintenance.fuzz_edits FEEDSTOCK... [--runs 2000] [--seed 1] [--commands 0.01]

A run takes the recipe, the variant file or conda-forge.yml of a feedstock, cuts it at a random place or damages it
(see fuzz_readers), and makes each edit, with its options and without. A fifth of the runs takes a hostile recipe and
conda-forge.yml instead, as `maintenance.hostile` makes them: templates and YAML that grow. The migration that
--migration names is damaged in a third of the runs; the pinning is a small one.
It is sound if each edit either gives a draft that can be written, or raises an error of ours that is one message;
within four seconds of processor time each. A share of the runs calls the command with --write too: it must end with 0,
or with 2, one message on stderr, no traceback and no file changed. Exits with 1 if a run is not sound; its feedstock is
kept in the folder that is printed. FEEDSTOCK is a folder, of which only the files that edits read are copied.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from feedstock_tools.edit.draft import Draft, open_draft
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
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.to_v1 import to_v1
from maintenance.fuzz_readers import SECONDS, changed
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES as YAML_KEYS
from maintenance.hostile.texts import yaml_text

FILES = ("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "conda-forge.yml")
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


class TooSlowError(BaseException):
    """An edit took more than its share of processor time."""


def too_slow(*_: object) -> None:
    """Handle the signal of the timer."""
    raise TooSlowError


def lay_out_pinning(place: Path, chance: random.Random) -> None:
    """Write the pinning, its migration of CUDA damaged at times."""
    for name, text in PINNING.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        damaged = changed(text, text, chance) if name == MIGRATION and chance.random() < 1 / 3 else text
        (place / name).write_bytes(damaged.encode("utf-8", "surrogatepass"))


def lay_out(source: Path, folder: Path, chance: random.Random) -> None:
    """Copy the files of a feedstock, one of them cut or damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "recipe").mkdir(parents=True)
    names = [name for name in FILES if (source / name).is_file()]
    migrations = [path.relative_to(source).as_posix() for path in (source / ".ci_support/migrations").glob("*.y*ml")]
    for name in (*names, *migrations):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / name)
    name = chance.choice([names[0], names[0], *names, *migrations])
    text = (source / name).read_text("utf-8", "replace")
    cut = text[: chance.randrange(len(text) + 1)]
    text = chance.choice((cut, cut, changed(text, text, chance)))
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def lay_out_hostile(folder: Path, chance: random.Random) -> None:
    """Write a feedstock of hostile templates, or of hostile YAML."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "recipe").mkdir(parents=True)
    name, text = chance.choice((("meta.yaml", meta_yaml(chance)), ("recipe.yaml", recipe_yaml(chance))))
    if chance.random() < 0.3:
        text = yaml_text(YAML_KEYS["recipe/recipe.yaml"], chance)
    (folder / "recipe" / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    forge = yaml_text(YAML_KEYS["conda-forge.yml"], chance)
    (folder / "conda-forge.yml").write_bytes(forge.encode("utf-8", "surrogatepass"))


def edited(folder: Path, edit: Callable[[Draft], Draft]) -> str:
    """'changed' or 'refused', or a description of what is not sound."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        changes = edit(open_draft(folder)).changes()
        list(changes.diff())
    except FeedstockError as error:
        return "refused" if str(error).strip() else "an error without a message"
    except TooSlowError:
        return f"takes more than {SECONDS} s"
    except BaseException:  # any exception that is not one of our errors
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "changed"


def called(folder: Path, words: tuple[str, ...]) -> str:
    """The same for a call of the command with --write."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "feedstock_tools", "edit", *words, "--feedstock", str(folder), "--write"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if ended.returncode == 0:
        return "changed"
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
    sound = ended.returncode == 2 and len(errors) == 1 and "Traceback" not in ended.stderr and before == after
    return "refused" if sound else f"ends with {ended.returncode}, {ended.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("feedstocks", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=float, default=0.01, help="share of the runs that call the command")
    given = parser.parse_args()
    sources = [path for path in given.feedstocks if any((path / name).is_file() for name in FILES[:2])]
    signal.signal(signal.SIGPROF, too_slow)
    keep = Path(tempfile.mkdtemp(prefix="fuzz-edits-"))
    every = edits(keep / "pinning")
    counts: Counter[str] = Counter()
    for number in range(given.runs):
        chance = random.Random(f"{given.seed}:{number}")  # noqa: S311 - repeatable on purpose
        folder = keep / "feedstock"
        if number % 5:
            lay_out(chance.choice(sources), folder, chance)
        else:
            lay_out_hostile(folder, chance)
        lay_out_pinning(keep / "pinning", chance)
        results = [(words, edited(folder, edit)) for edit, words in every]
        if chance.random() < given.commands:
            words = chance.choice(every)[1]
            results.append((words, f"{called(folder, words)} by the command"))
        for words, result in results:
            sound = result.split(" by ")[0] in {"changed", "refused"}
            counts[result if sound else "not sound"] += 1
            if not sound:
                shutil.copytree(folder, keep / str(number), dirs_exist_ok=True)
                shutil.copytree(keep / "pinning", keep / str(number) / "pinning", dirs_exist_ok=True)
                print(f"run {number}, {' '.join(words)}: {result}\n", flush=True)
    print(given.runs, "runs:", dict(counts), f"kept in {keep}" if counts["not sound"] else "")
    return counts["not sound"] > 0


if __name__ == "__main__":
    sys.exit(main())
