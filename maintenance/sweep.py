"""Rerender random real feedstocks with feedstock-tools and with conda-smithy, and compare whole trees.

    python -m maintenance.sweep run MIRROR RECORDS --peer "COMMAND {feedstock} {pinning}" [--cases N] [--seed N]
    python -m maintenance.sweep run MIRROR RECORDS --recorded --peer "COMMAND {feedstock} {pinning} {release}
        {conda_build}" [--cases N] [--seed N]
    python -m maintenance.sweep table RECORDS [RECORDS ...]

MIRROR has bare clones as OWNER+NAME/repo, those of conda-forge-pinning-feedstock and conda-smithy among them. A case is
a feedstock and a commit of its last two years, drawn by the seed. It is rerendered with the newest pinning and release
of conda-smithy or, with --recorded, with those that its last rerender names and the conda-build of that day. COMMAND
runs conda-smithy and writes into {feedstock}, a clone of its own. Both processes count with their processor time, up to
15 minutes; what takes longer is recorded as such. Files are compared by bytes and executable bits, all but `.git` and
the number of a feedstock at Azure, for which conda-smithy needs a network.

RECORDS receives a line of JSON as soon as a case is known, and cases that it has are not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.histories import Commit, Pinnings, feedstocks, git, lay_out, unpack
from feedstock_tools.rerender.rules import Rules
from tests.support.command import environment, measured, tool

SMITHY = "conda-forge+conda-smithy"
LIMIT = 15 * 60
#: conda-smithy asks Azure for it and writes None if it gets no answer; feedstock-tools keeps the one that was there.
_AZURE_NUMBER = re.compile(rb"(?<=definitionId=)(\d+|None)(?=&)")
_TWO_YEARS = "--since=2 years ago"


@dataclass(frozen=True)
class Record:
    """What came of a case: its processor times in seconds, how each program ended, and the files that differ."""

    case: str
    release: str
    ours: float = 0.0
    theirs: float = 0.0
    ours_ended: str = ""
    theirs_ended: str = ""
    files: int = 0
    differ: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The kind of result, as the table counts it."""
        if self.theirs_ended:
            return "both refuse" if self.ours_ended else f"conda-smithy {self.theirs_ended.partition(':')[0]}"
        if self.ours_ended:
            return "feedstock-tools refuses"
        return "different" if self.differ else "equal"


def drawn(mirror: Path, seed: int) -> Iterator[Commit]:
    """Feedstocks in random order, again and again, each time with another commit of its last two years.

    What is drawn of a feedstock does not depend on which others there are.
    """
    commits: dict[Path, list[str]] = {}
    for repository in feedstocks(mirror):
        found = git(repository, "log", "--first-parent", _TWO_YEARS, "--format=%H", "HEAD").decode().split()
        commits[repository] = sorted(found, key=partial(_rank, seed))
    for at in range(max(map(len, commits.values()), default=0)):
        for repository in sorted(commits, key=lambda path: _rank(seed, f"{at} {path.parent.name}")):
            if at < len(commits[repository]):
                yield Commit(repository, commits[repository][at], {})


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def release_folder(mirror: Path, version: str, cache: Path) -> Path | None:
    """The source tree of a release of conda-smithy; None if it is not in the clone."""
    folder = cache / version
    if not folder.is_dir():
        try:
            unpack(mirror / SMITHY / "repo", f"v{version}", folder)
        except subprocess.CalledProcessError:
            shutil.rmtree(folder)
            return None
    return folder


def newest_release(mirror: Path) -> str:
    """The newest version among the tags."""
    tags = git(mirror / SMITHY / "repo", "tag").decode().split()
    versions = [tag.removeprefix("v") for tag in tags if tag.removeprefix("v").replace(".", "").isdigit()]
    return max(versions, key=lambda version: tuple(map(int, version.split("."))))


def tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Kind and content of each file, by name."""
    found = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(root, name)
            executable = "x" if not path.is_symlink() and path.stat().st_mode & 0o100 else "-"
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            content = _AZURE_NUMBER.sub(b"", content)
            found[path.relative_to(folder).as_posix()] = ("l" if path.is_symlink() else executable, content)
    return found


def run_in(command: list[str], copy: Path, variables: Mapping[str, str]) -> tuple[float, str]:
    """Processor seconds of a command in a copy, and how it ended: '' if well."""
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(copy.parent.parent / "laid-out", copy, symlinks=True)
    ended = measured(["/usr/bin/prlimit", f"--cpu={LIMIT}", *command], variables=variables)
    if not ended.returncode:
        return ended.seconds, ""
    if ended.seconds >= LIMIT - 1:
        return ended.seconds, "takes over 15 minutes"
    if ended.returncode < 0:
        return ended.seconds, f"killed by signal {-ended.returncode}"
    last = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or [""]
    return ended.seconds, f"refuses: {last[0][:200]}".replace(str(copy), "")


def compared(record: Record, feedstock: Path, ours: list[str], theirs: list[str]) -> Record:
    """The record of a case, whose files lie in `laid-out` of the folder above."""
    name = feedstock.name
    laid_out = feedstock.parent / "laid-out"
    git(laid_out, "init", "-q", ".")
    git(laid_out, "add", "-A", "-f")
    git(laid_out, "-c", "user.name=sweep", "-c", "user.email=sweep@localhost", "commit", "-q", "-m", "before")
    mine, other = feedstock.parent / "ours" / name, feedstock.parent / "theirs" / name
    words = [word.format(feedstock=mine) for word in ours]
    bytecode = str(feedstock.parent.parent / "bytecode")
    variables = environment(PYTHONPYCACHEPREFIX=bytecode)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = [run_in(words, mine, variables) for _ in range(2)]
    seconds, ended = min(runs)  # the first of all compiles Python's bytecode and the templates
    peer_seconds, peer_ended = run_in([word.format(feedstock=other) for word in theirs], other, dict(os.environ))
    found, expected = tree(mine), tree(other)
    differ = sorted(path for path in {*found, *expected} if found.get(path) != expected.get(path))
    both = not ended and not peer_ended
    return Record(
        record.case, record.release, seconds, peer_seconds, ended, peer_ended, len(expected), differ if both else []
    )


def sweep(mirror: Path, known: set[str], options: argparse.Namespace) -> Iterator[Record]:
    """Records of cases that are not known yet."""
    newest = newest_release(mirror)
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(scratch)
        pinnings = Pinnings(mirror, cache / "pinnings")
        counted = 0
        for commit in drawn(mirror, options.seed):
            if counted == options.cases:
                return
            release, pinning = newest, pinnings.newest
            if options.recorded:
                day = pinnings.day_of(commit)
                if day is None:
                    continue
                release, pinning = day.rules.smithy, day.pinning
            smithy = release_folder(mirror, release, cache / "releases")
            folder = cache / "case" / commit.feedstock
            shutil.rmtree(folder.parent, ignore_errors=True)
            if smithy is None or not lay_out(commit.repository, commit.name, folder.parent / "laid-out"):
                continue
            counted += 1
            record = Record(f"{commit.feedstock} {commit.name[:8]}", release)
            if f"{record.case} {release}" in known:
                continue
            conda_build = Rules.parse(release).conda_build_version
            filled = {"pinning": pinning, "release": release, "conda_build": conda_build, "feedstock": "{feedstock}"}
            ours = tool(
                "rerender", "{feedstock}", "--pinning", str(pinning), "--smithy", str(smithy), "--rules", release
            )
            theirs = [word.format(**filled) for word in shlex.split(options.peer)]
            yield compared(record, folder, ours, theirs)


def read(files: list[Path]) -> list[Record]:
    """The records of files."""
    return [Record(**json.loads(line)) for file in files if file.is_file() for line in file.read_text().splitlines()]


def table(records: list[Record]) -> str:
    """Outcomes and ratios of each release as a table in Markdown, and below it each case that is not equal."""
    outcomes = list(dict.fromkeys(["equal", "different", *sorted({record.outcome for record in records})]))
    lines = [f"| conda-smithy | cases | {' | '.join(outcomes)} | ratio of processor time, median | least |"]
    lines.append("|---" * (len(outcomes) + 4) + "|")
    for release in sorted({record.release for record in records}):
        chosen = [record for record in records if record.release == release]
        counts = Counter(record.outcome for record in chosen)
        ratios = [record.theirs / record.ours for record in chosen if record.outcome in ("equal", "different")]
        shown = f"{median(ratios):.0f} | {min(ratios):.0f}" if ratios else "- | -"
        lines.append(f"| {release} | {len(chosen)} | {' | '.join(str(counts[kind]) for kind in outcomes)} | {shown} |")
    for record in records:
        if record.outcome != "equal":
            why = ", ".join(record.differ[:6]) or record.ours_ended or record.theirs_ended
            lines.append(f"- {record.case} ({record.release}): {record.outcome}: {why}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """0, however the cases came out: the table says it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("mirror", type=Path)
    running.add_argument("records", type=Path)
    running.add_argument("--peer", required=True, help="command with {feedstock}, {pinning}, {release}, {conda_build}")
    running.add_argument("--recorded", action="store_true", help="release and pinning of the last rerender")
    running.add_argument("--cases", type=int, default=200)
    running.add_argument("--seed", type=int, default=1)
    commands.add_parser("table").add_argument("records", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "table":
        sys.stdout.write(table(read(options.records)))
        return 0
    known = {f"{record.case} {record.release}" for record in read([options.records])}
    for record in sweep(options.mirror.resolve(), known, options):
        with options.records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {record.case} {record.release}: {record.outcome}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
