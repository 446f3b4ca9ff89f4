"""Convert every `meta.yaml` in a folder of feedstocks, and compare what both recipes build.

    python -m benchmarks.edits.to_v1 FOLDER [FOLDER …] [--most 100] [--with 'COMMAND {recipe}']

Each folder holds feedstocks with `.ci_support`. For every configuration the packages of the converted recipe must equal
those of the original: names, versions, build strings without their hashes, requirements and run exports. With `--with`
another converter is measured on the same feedstocks: a command that prints a `recipe.yaml`, or writes it to `{out}`.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import read_document
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import compare_recipes, convert_recipe


def feedstocks(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for feedstock in sorted(folder.iterdir()):
            if (feedstock / "recipe/meta.yaml").is_file():
                yield feedstock


def converted(feedstock: Path, command: str | None) -> tuple[str, int]:
    """The recipe that a converter makes, and the lines that it lists as lost."""
    recipe = feedstock / "recipe/meta.yaml"
    if command is None:
        made = convert_recipe(read_document(recipe, within=feedstock), read_configurations(feedstock))
        return made.text, len(made.problems)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "recipe.yaml"
        words = [word.format(recipe=recipe, feedstock=feedstock, out=out) for word in shlex.split(command)]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        text = out.read_text() if out.is_file() else ended.stdout
    if not text.strip():
        lines = (ended.stderr or "nothing printed").strip().splitlines()
        raise FeedstockError(lines[-1])
    return text, 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=100, help="configurations of a feedstock")
    parser.add_argument("--with", dest="command", help="another converter")
    given = parser.parse_args()
    states: Counter[str] = Counter()
    compared = different = 0
    for feedstock in feedstocks(given.folders):
        began = time.process_time()
        try:
            chosen = read_configurations(feedstock)[: given.most]
            text, lost = converted(feedstock, given.command)
            differences = compare_recipes(feedstock, text, chosen)
        except (FeedstockError, subprocess.TimeoutExpired) as error:
            states["error"] += 1
            print(f"{feedstock.name}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        compared += len(chosen)
        different += len(differences)
        result = "equal" if not differences else "differs"
        states[result] += 1
        spent = time.process_time() - began
        print(
            f"{feedstock.name}: {result}, {len(differences)} of {len(chosen)} configurations differ, "
            f"{lost} lines listed, {spent:.1f} s",
            flush=True,
        )
        for difference in differences[:1]:
            print(*(f"    {difference.configuration}: {line[:200]}" for line in difference.lines[:6]), sep="\n")
    print(dict(states))
    print(f"{compared - different} of {compared} configurations equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
