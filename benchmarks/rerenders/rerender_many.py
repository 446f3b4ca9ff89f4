"""Rerender many feedstocks in one command, and measure the rate, the slowest ones and memory.

    python -m benchmarks.rerenders.rerender_many FEEDSTOCK... --pinning DIR --smithy DIR [--copies 20] [--jobs 2]

Each feedstock is copied several times; each copy differs from the others in a line of its recipe, so that no result can
be shared. The run starts cold: a new process, no compiled templates. Nothing is written
without `--write`. Prints the rate from start to end, processor time per feedstock (median, slowest), and the memory of
the worker processes after the second and the last copy of all feedstocks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.rerender.many import RerenderedFeedstock, rerender_many
from feedstock_tools.rerender.smithy import chosen_rules, find_release


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        copies = list(_copies(options.feedstocks, options.copies, Path(scratch)))
        release = find_release(options.smithy, cache=Path(scratch) / "templates") if options.smithy else None
        memory: list[int] = []
        outcomes: list[RerenderedFeedstock] = []
        began = time.monotonic()
        for found in rerender_many(
            copies,
            pinning=options.pinning,
            rules=chosen_rules(options.rules, release),
            smithy=release,
            write=options.write,
            jobs=options.jobs,
        ):
            outcomes.append(found)
            if len(outcomes) % len(options.feedstocks) == 0:
                memory.append(_memory_of_children())
        seconds = time.monotonic() - began
    _report(outcomes, seconds, memory, len(options.feedstocks))
    return 0


def _copies(feedstocks: list[Path], count: int, scratch: Path) -> Iterator[Path]:
    """Copy by copy of all feedstocks, each in a folder of the feedstock's name."""
    for number in range(count):
        for feedstock in feedstocks:
            copy = scratch / str(number) / feedstock.resolve().name
            shutil.copytree(feedstock, copy, ignore=shutil.ignore_patterns(".git"), symlinks=True)
            for name in ("meta.yaml", "recipe.yaml"):
                recipe = copy / "recipe" / name
                if recipe.is_file():
                    text = recipe.read_text()
                    recipe.write_text(f"{text.rstrip()}\n# copy {number}\n")
            yield copy


def _memory_of_children() -> int:
    """Bytes that the children of this process have in memory of their own (Linux)."""
    found = 0
    for task in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in task.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if lines.get("PPid") == str(os.getpid()):
            found += int(lines.get("RssAnon", "0 kB").split()[0]) * 1024
    return found


def _report(outcomes: list[RerenderedFeedstock], seconds: float, memory: list[int], size: int) -> None:
    for found in outcomes:
        if found.outcome in ("refused", "failed"):
            print(found.outcome, found.feedstock.name, found.reason.splitlines()[0])
    slowest = max(outcomes, key=lambda found: found.seconds)
    each = statistics.median(found.seconds for found in outcomes)
    print(f"{len(outcomes)} of {size} feedstocks in {seconds:.1f} s: {len(outcomes) / seconds:.1f} a second")
    print(f"processor time: median {each * 1000:.0f} ms, slowest {slowest.seconds:.2f} s ({slowest.feedstock.name})")
    total = sum(found.seconds for found in outcomes)
    print(f"all: {total:.1f} s, {total / len(outcomes) * 1000:.0f} ms each")
    if len(memory) > 1:
        print(f"memory: {memory[1] >> 20} MiB after copy 2, {memory[-1] >> 20} MiB after copy {len(memory)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("feedstocks", nargs="+", type=Path)
    parser.add_argument("--pinning", type=Path, required=True)
    parser.add_argument("--smithy", type=Path)
    parser.add_argument("--rules")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
