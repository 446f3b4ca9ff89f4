"""Record the results of rerenders of many feedstocks with this checkout, to compare with those of another checkout.

    python -m maintenance.same_rerenders record MIRROR FILE [--most N] [--outputs]
    python -m maintenance.same_rerenders compare FILE FILE

MIRROR has clones as `<owner>+<name>-feedstock/repo`, bare or not, the one of the pinning among them. Each feedstock is
rerendered at its newest commit and at up to N - 1 others that changed its recipe, all with the newest pinning and
rules; FILE receives a digest of each file of `.ci_support`, with --outputs also one of the packages, or the message of
the error. `compare` prints every difference and exits with 1 if there is any. Run it in the root of the repository,
with PYTHONPATH=. if the package is not installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.histories import Pinnings, feedstocks, git, lay_out


def commits_of(repository: Path, most: int) -> list[str]:
    """The newest commit, and others that changed the recipe, evenly spread over the history."""
    newest = git(repository, "rev-parse", "HEAD").decode().strip()
    log = git(repository, "log", "--format=%H", "HEAD", "--", "recipe").decode().split()
    others = [commit for commit in log if commit != newest]
    wanted = max(most - 1, 0)
    return [newest, *(others[:: max(1, -(-len(others) // wanted))][:wanted] if wanted else ())]


def results(feedstock: Path, pinning: Path, outputs: bool) -> dict[str, str]:
    """A digest of each file that a rerender writes and of the packages, or the error."""
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.rerender.outputs import output_files
    from feedstock_tools.rerender.rerendering import rerender

    try:
        made = rerender(feedstock, pinning=pinning)
        found = {name: hashlib.sha256(content).hexdigest()[:16] for name, content in made.files.items()}
        if outputs:
            packages = "\n".join(str(package) for package in output_files(feedstock, made.configurations))
            found["outputs"] = hashlib.sha256(packages.encode()).hexdigest()[:16]
    except FeedstockError as error:
        return {"error": str(error).replace(str(feedstock), "")}
    return found


def record(mirror: Path, most: int, outputs: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Feedstock and commit with the results."""
    with tempfile.TemporaryDirectory() as scratch:
        pinning = Pinnings(mirror, Path(scratch) / "pinnings").newest
        for repository in feedstocks(mirror):
            name = repository.parent.name.partition("+")[2]
            for commit in commits_of(repository, most):
                folder = Path(scratch, commit, name)
                if not lay_out(repository, commit, folder):
                    continue
                start = time.process_time()
                found = results(folder, pinning, outputs)
                sys.stderr.write(f"{name} {commit[:8]} {time.process_time() - start:.2f} s\n")
                yield f"{name} {commit[:8]}", found


def differences(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> Iterator[str]:
    """A line for each result that differs or is missing."""
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            yield f"{key}: only in the {'second' if old is None else 'first'} file"
            continue
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield f"{key}: {name}: {old.get(name, 'missing')} -> {new.get(name, 'missing')}"


def main() -> int:
    """1 if two records differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("mirror", type=Path)
    recording.add_argument("file", type=Path)
    recording.add_argument("--most", type=int, default=1, help="commits of each feedstock")
    recording.add_argument("--outputs", action="store_true", help="the packages of each configuration, too")
    comparing = commands.add_parser("compare")
    comparing.add_argument("files", type=Path, nargs=2)
    args = parser.parse_args()
    if args.command == "record":
        found = dict(record(args.mirror, args.most, args.outputs))
        args.file.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
        return 0
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in args.files)
    lines = list(differences(before, after))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(before)} and {len(after)} rerenders, {len(lines)} differences\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
