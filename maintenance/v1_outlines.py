"""Compare the outline of a recipe.yaml with its whole rendering, for every version in the histories of feedstocks.

    python maintenance/v1_outlines.py MIRROR [--only NAME] [--platforms N] [--most N]

A rerender asks the engine once for each way through a recipe (`recipe/v1/outline.py`). This renders each version of
each recipe/recipe.yaml both ways, with its commit's variant files and conda-forge.yml and the newest pinning, on up to
N platforms of each version in turn, and prints every difference (exit status 1) and how often the engine was called.
MIRROR as for `same_rerenders.py`. Run it in the root of the repository with PYTHONPATH=.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintenance.same_rerenders import git, lay_out, lay_out_pinning

if TYPE_CHECKING:
    from feedstock_tools.recipe.v1_engine import ParsedV1
    from feedstock_tools.rerender.source import Source

RECIPE = "recipe/recipe.yaml"


def versions_of(repository: Path) -> Iterator[str]:
    """A commit for each different text of the recipe, newest first."""
    seen = {"0" * 40}
    log = git(
        repository, "log", "--all", "--format=commit %H", "--raw", "--no-abbrev", "--no-renames", "--", RECIPE
    ).decode()
    commit = ""
    for line in log.splitlines():
        if line.startswith("commit "):
            commit = line.split()[1]
        elif line.startswith(":") and line.split()[3] not in seen:
            seen.add(line.split()[3])
            yield commit


def outlined(recipe: ParsedV1, rendering: Any, config: Any) -> tuple[Any, float]:
    """What a rerender uses: outputs, or the error; and the seconds it took."""
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.recipe.v1.outline import outline_recipe_v1

    start = time.process_time()
    try:
        found = outline_recipe_v1(recipe, config, rendering.platform, watch=lambda *_: None)
    except FeedstockError:
        return "refused", time.process_time() - start
    seconds = time.process_time() - start
    return None if found is None else {_facts(output) for output in found.outputs}, seconds


def rendered(source: Source, rendering: Any, config: Any) -> tuple[Any, float]:
    """The same from the whole rendering."""
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.rerender.source import render_source

    start = time.process_time()
    try:
        found = render_source(source, config, rendering)
    except FeedstockError:
        return "refused", time.process_time() - start
    seconds = time.process_time() - start
    return {_facts(output) for output in found.outputs}, seconds


def _facts(output: Any) -> tuple[Any, ...]:
    return output.name, output.noarch, tuple(sorted(output.variant.items())), output.used, output.variants.axes


def compare(folder: Path, pinning: Path, turn: int, platforms: int, count: Counter[str]) -> Iterator[str]:
    """What differs for one version."""
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.recipe.v1_engine import ParsedV1
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.source import read_source, variants_of

    try:
        source = read_source(folder, pinning, Rules.newest())
        renderings = [(one, variants_of(source, one)) for one in source.forge.renderings]
    except FeedstockError:
        count["unreadable"] += 1
        return
    if not isinstance(source.parsed, ParsedV1):
        return
    first = turn % max(1, len(renderings))
    for rendering, config in (renderings[first:] + renderings[:first])[:platforms]:
        quick, quick_seconds = outlined(replace(source.parsed, environ=rendering.environ), rendering, config)
        whole, whole_seconds = rendered(source, rendering, config)
        count["outlines"] += 1
        count["ms whole"] += round(1000 * whole_seconds)
        count["ms outlines"] += round(1000 * quick_seconds)
        if quick is None:
            count["left to the whole rendering"] += 1
        elif quick != whole:
            count["differ"] += 1
            some = "refused" if "refused" in (quick, whole) else f"{len(quick)} and {len(whole)} outputs"
            refused = ", by the outline" if quick == "refused" else ", by the whole rendering"
            yield f"{rendering.platform.name}: {some}{refused if some == 'refused' else ''}"


def main() -> int:
    """1 if any outline differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--only", help="this feedstock")
    parser.add_argument("--platforms", type=int, default=1, help="of each version")
    parser.add_argument("--most", type=int, default=10**9, help="versions of each recipe, the newest first")
    args = parser.parse_args()
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        pinning = lay_out_pinning(args.mirror, Path(scratch))
        for repository in sorted(args.mirror.glob("*-feedstock/repo")):
            name = repository.parent.name.partition("+")[2]
            if not (repository / "HEAD").is_file() or (args.only and name != args.only):
                continue
            for turn, commit in enumerate(list(versions_of(repository))[: args.most]):
                folder = Path(scratch, commit, name)
                folder.mkdir(parents=True)
                try:
                    lay_out(repository, commit, folder)
                except subprocess.CalledProcessError:
                    continue  # a clone without its whole history
                for line in compare(folder, pinning, turn, args.platforms, count):
                    sys.stdout.write(f"{name} {commit[:8]} {line}\n")
                    sys.stdout.flush()
    sys.stdout.write(", ".join(f"{key}: {number}" for key, number in sorted(count.items())) + "\n")
    return int(count["differ"] > 0)


if __name__ == "__main__":
    sys.exit(main())
