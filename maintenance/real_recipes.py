"""Read every version of every recipe in the histories of feedstocks under the bounds, and count refusals.

    python maintenance/real_recipes.py MIRROR [--most N] [--render] [--only v0|v1]

MIRROR has clones as `<owner>+<name>-feedstock/repo`, bare or not. Each different text that `recipe/recipe.yaml` or
`recipe/meta.yaml` ever had is parsed, and with --render rendered for linux-64 too, under the bounds of a command. Only
refusals by a bound count (exit status 1, each with its commit's blob), not those by the engine, by YAML or for a
missing value. Recipes are not stored. Run it in the root of the repository, with PYTHONPATH=. if the package is not
installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import BoundError
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.variants.model import VariantConfig

LINUX = Platform.parse("linux-64")
RECIPES = {"v0": "meta.yaml", "v1": "recipe.yaml"}
#: The path of the pinning after `main` has extracted it from the mirror.
PINNING = Path(tempfile.gettempdir()) / f"real-recipes-{os.getuid()}" / "conda_build_config.yaml"
#: Recipes read in one child.
TOGETHER = 40


def blobs_of(repository: Path, name: str) -> list[str]:
    """The different texts that a file of the recipe ever had, by their numbers in git."""
    command = ["git", "-C", str(repository), "log", "--all", "--format=", "--raw", "--no-abbrev", "--no-renames", "--"]
    log = subprocess.run([*command, f"recipe/{name}"], capture_output=True, text=True, check=True).stdout
    found = {line.split()[3] for line in log.splitlines() if line.startswith(":")}
    return sorted(found - {"0" * 40})


def text_of(repository: Path, blob: str) -> str:
    """One of these texts."""
    command = ["git", "-C", str(repository), "cat-file", "blob", blob]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")


def read(text: str, kind: str, render: bool) -> str:
    """'' for a recipe that can be read, 'bound: …' for what a bound refuses, else 'other'."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, RECIPES[kind])
        path.write_text(text, encoding="utf-8")
        try:
            _read(path, kind, render)
        except BoundError as error:
            return f"bound: {error.mistakes[0].message}"
        except FeedstockError as error:
            return "bound: templates" if "template" in str(error) and "limit" in str(error) else "other"
    return ""


def _read(path: Path, kind: str, render: bool) -> None:
    from feedstock_tools.recipe.v0.recipe import read_recipe, render_recipe
    from feedstock_tools.recipe.v1.recipe import render_recipe_v1
    from feedstock_tools.recipe.v1_engine import read_v1

    values = _values()
    if kind == "v1":
        recipe = read_v1(path)
        if render:
            render_recipe_v1(recipe, values, LINUX)
    else:
        parsed = read_recipe(path.parent)
        if render:
            render_recipe(parsed, values, LINUX, environ={})


@cache
def _values() -> VariantConfig:
    """The values of conda-forge's pinning, where the mirror has it."""
    from feedstock_tools.variants import combine, defaults, load

    layers = [defaults(LINUX)]
    if PINNING.is_file():
        layers.append(load(PINNING, LINUX, environ={}))
    return combine(layers)


def read_some(repository: Path, blobs: list[str], kind: str, render: bool) -> list[tuple[str, str]]:
    """Each text's number with the result of `read`."""
    return [(blob, read(text_of(repository, blob), kind, render)) for blob in blobs]


def refusals(repository: Path, kind: str, most: int, render: bool, count: Counter[str]) -> Iterator[str]:
    """The refusals by bounds in one history; updates `count`."""
    blobs = blobs_of(repository, RECIPES[kind])
    blobs = blobs[:: max(1, -(-len(blobs) // most))]
    for start in range(0, len(blobs), TOGETHER):
        some = blobs[start : start + TOGETHER]
        try:
            found = run_bounded(partial(read_some, repository, some, kind, render))
        except BoundError:  # one of them exceeded a bound of the system: find out which
            found = []
            for blob in some:
                try:
                    found += run_bounded(partial(read_some, repository, [blob], kind, render))
                except BoundError as error:
                    found.append((blob, f"bound: {error.mistakes[0].message}"))
        for blob, said in found:
            count[f"{kind} {'refused' if said.startswith('bound') else said or 'read'}"] += 1
            if said.startswith("bound"):
                yield f"{repository.parent.name} {blob}: {said}"


def main() -> int:
    """1 if a bound refuses any of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument(
        "--most", type=int, default=10**9, help="read up to about N versions of each recipe, evenly spread"
    )
    parser.add_argument("--render", action="store_true", help="render each for linux-64, too")
    parser.add_argument("--only", choices=RECIPES)
    args = parser.parse_args()
    pinning = args.mirror / "conda-forge+conda-forge-pinning-feedstock" / "repo"
    if pinning.is_dir():
        PINNING.parent.mkdir(exist_ok=True)
        PINNING.write_text(text_of(pinning, "HEAD:recipe/conda_build_config.yaml"), encoding="utf-8")
    count: Counter[str] = Counter()
    refused = 0
    for repository in sorted(args.mirror.glob("*-feedstock/repo")):
        for kind in [args.only] if args.only else RECIPES:
            for line in refusals(repository, kind, args.most, args.render, count):
                refused += 1
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    sys.stdout.write(", ".join(f"{key}: {number}" for key, number in sorted(count.items())) + "\n")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
