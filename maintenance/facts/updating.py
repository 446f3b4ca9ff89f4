"""All that reads an index or clones, one after the other, and what it changed in the files of facts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from feedstock_tools.data import data_folder
from maintenance.facts import conda_builds, feedstocks, framework_wheels, libraries, toolkits
from maintenance.facts.records import RECORDED, say

#: Larger libraries, which are downloaded whole, are left to `libraries` alone.
_LARGEST_MB = 100


def update(index: str, mirror: Path | None) -> int:
    """Read what is new, write it, and print the difference; return how much is wrong or could not be read.

    What a step has read is recorded at once: a run that was stopped goes on with the rest.

    Args:
        mirror: the folder with clones of feedstocks, if those are read too.
    """
    before = _texts()
    steps: dict[str, Callable[[], int]] = {
        "toolkits": lambda: toolkits.update(index, False, False),
        "libraries": lambda: libraries.update(index, False, _LARGEST_MB, ()),
    }
    if mirror is not None:
        clones = mirror
        steps["feedstocks"] = lambda: _of_feedstocks(clones)
        steps["conda-builds"] = lambda: conda_builds.update(clones, False)
    steps["frameworks"] = lambda: framework_wheels.update(index, False, ())
    wrong = 0
    for name, step in steps.items():
        say(f"--- {name}")
        try:
            wrong += step()
        except OSError as error:
            wrong += 1
            say(f"{name}: not read: {error}")
    changed = list(difference(before, _texts()))
    say("--- difference", *(changed or ["Nothing is new."]))
    return wrong


def _of_feedstocks(mirror: Path) -> int:
    feedstocks.update(mirror)
    return 0


def _texts() -> dict[str, str]:
    """The files of facts, and the records of what was read, by name."""
    paths = [*data_folder("variants").glob("*.yaml"), *RECORDED.rglob("*.json")]
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(paths)}


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Each line of the facts that came or went, and a count for each record.

    >>> list(difference({"cuda.yaml": "a\\nb\\n", "x.json": "1\\n"}, {"cuda.yaml": "a\\nc\\n", "x.json": "2\\n3\\n"}))
    ['cuda.yaml: -b', 'cuda.yaml: +c', 'x.json: 2 lines came, 1 went']
    """
    for name, text in after.items():
        lines = [
            line
            for line in difflib.unified_diff(before.get(name, "").splitlines(), text.splitlines(), n=0, lineterm="")
            if not line.startswith(("---", "+++", "@@"))
        ]
        if name.endswith(".yaml"):
            yield from (f"{name}: {line[0]}{line[1:].strip()}" for line in lines)
        elif lines:
            came = sum(line.startswith("+") for line in lines)
            yield f"{name}: {came} lines came, {len(lines) - came} went"
