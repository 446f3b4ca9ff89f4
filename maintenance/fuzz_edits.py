"""Edit cut and otherwise damaged recipes with every edit, and report those that an edit neither changes nor refuses.

    python -m maintenance.fuzz_edits FEEDSTOCK... [--runs 2000] [--seed 1] [--commands 0.01]

A run takes the recipe, the variant file or conda-forge.yml of a feedstock, cuts it at a random place or damages it
(see fuzz_readers), and makes each edit. A fifth of the runs takes a hostile recipe and conda-forge.yml instead, as
`maintenance.hostile` makes them: templates and YAML that grow.
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

from feedstock_tools.edit.build_number import raise_build_number, set_build_number
from feedstock_tools.edit.document import Document
from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.maintainers import add_maintainer, drop_maintainer
from feedstock_tools.edit.platforms import add_platform, set_provider
from feedstock_tools.edit.requirements import Where, add_requirement, drop_requirement, pin_requirement
from feedstock_tools.edit.variant_lists import CUDA, PYTHON, add_version, drop_version
from feedstock_tools.edit.version import left_behind, set_version
from feedstock_tools.errors import FeedstockError
from maintenance.fuzz_readers import SECONDS, changed
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES as YAML_KEYS
from maintenance.hostile.texts import yaml_text

FILES = ("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "conda-forge.yml")
DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}


def in_recipe(edit: Callable[[Document], Document]) -> Callable[[Draft], Draft]:
    """An edit of the recipe alone."""
    return lambda draft: draft.with_recipe(edit)


def new_version(recipe: Document) -> Document:
    """Another version, with what the command remarks on."""
    left_behind(recipe, "99.1")
    return set_version(recipe, "99.1", lambda _url, kind: "a" * DIGITS[kind])


#: Each edit as a function and as words of the command.
EDITS: tuple[tuple[Callable[[Draft], Draft], tuple[str, ...]], ...] = (
    (in_recipe(new_version), ("version", "99.1", "--sha256", "a" * 64)),
    (in_recipe(lambda recipe: set_build_number(recipe, 7)), ("build-number", "7")),
    (in_recipe(raise_build_number), ("build-number", "+1")),
    (in_recipe(lambda recipe: add_maintainer(recipe, "zz-zz")), ("maintainer", "add", "zz-zz")),
    (in_recipe(lambda recipe: drop_maintainer(recipe, "h-vetinari")), ("maintainer", "drop", "h-vetinari")),
    (
        in_recipe(lambda recipe: add_requirement(recipe, "zz >=1", Where("run", None, "linux"))),
        ("requirement", "add", "zz >=1", "--section", "run", "--if", "linux"),
    ),
    (in_recipe(lambda recipe: drop_requirement(recipe, "python", Where())), ("requirement", "drop", "python")),
    (in_recipe(lambda recipe: pin_requirement(recipe, "pip >=9", Where())), ("requirement", "pin", "pip >=9")),
    (lambda draft: add_version(draft, CUDA, "12.9", None), ("add-cuda", "12.9")),
    (lambda draft: drop_version(draft, CUDA, "12.9"), ("drop-cuda", "12.9")),
    (lambda draft: add_version(draft, PYTHON, "3.13", None), ("add-python", "3.13")),
    (lambda draft: drop_version(draft, PYTHON, "3.10"), ("drop-python", "3.10")),
    (lambda draft: add_platform(draft, "linux-aarch64"), ("platform", "add", "linux-aarch64")),
    (lambda draft: set_provider(draft, "win-64", "azure"), ("provider", "win-64", "azure")),
)


class TooSlowError(BaseException):
    """An edit took more than its share of processor time."""


def too_slow(*_: object) -> None:
    """Handle the signal of the timer."""
    raise TooSlowError


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
    counts: Counter[str] = Counter()
    for number in range(given.runs):
        chance = random.Random(f"{given.seed}:{number}")  # noqa: S311 - repeatable on purpose
        folder = keep / "feedstock"
        if number % 5:
            lay_out(chance.choice(sources), folder, chance)
        else:
            lay_out_hostile(folder, chance)
        results = [(words, edited(folder, edit)) for edit, words in EDITS]
        if chance.random() < given.commands:
            words = chance.choice(EDITS)[1]
            results.append((words, f"{called(folder, words)} by the command"))
        for words, result in results:
            sound = result.split(" by ")[0] in {"changed", "refused"}
            counts[result if sound else "not sound"] += 1
            if not sound:
                shutil.copytree(folder, keep / str(number), dirs_exist_ok=True)
                print(f"run {number}, {' '.join(words)}: {result}\n", flush=True)
    print(given.runs, "runs:", dict(counts), f"kept in {keep}" if counts["not sound"] else "")
    return counts["not sound"] > 0


if __name__ == "__main__":
    sys.exit(main())
