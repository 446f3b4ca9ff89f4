"""Count what does not fit a terminal: python -m benchmarks.checks.screens PINNING FEEDSTOCK...

Every command that shows something of a feedstock runs in a pseudo-terminal of 80, 100, 120 and 200 columns, on clones
of feedstocks and of the pinning. For each: its lines, the widest, how many are wider than the terminal, names that the
terminal breaks there, and lines that were there before. `--keep FOLDER` writes what was printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.wording import counted, table

WIDTHS = (80, 100, 120, 200)
#: Each with FEEDSTOCK, PINNING and FOLDER, an empty folder of the run, in place of these words.
COMMANDS = (
    "outputs --feedstock FEEDSTOCK",
    "rerender FEEDSTOCK --pinning PINNING --check",
    "why cuda_compiler_version --feedstock FEEDSTOCK --pinning PINNING",
    "why python --feedstock FEEDSTOCK --pinning PINNING",
    "why linux_64* --feedstock FEEDSTOCK --pinning PINNING",
    "lint FEEDSTOCK --pinning PINNING",
    "edit build-number +1 --feedstock FEEDSTOCK --pinning PINNING",
    "edit version 99.0 --feedstock FEEDSTOCK --pinning PINNING --sha256 HASH",
    "import FEEDSTOCK --pinning PINNING --dry-run",
    "generate FEEDSTOCK",
    "diff HEAD~5 HEAD --feedstock FEEDSTOCK",
    "review HEAD~5 --feedstock FEEDSTOCK --no-rehearse --pinning PINNING",
    "plan --feedstock FEEDSTOCK",
    "build --list --feedstock FEEDSTOCK",
    "status --feedstock FEEDSTOCK",
    "test --feedstock FEEDSTOCK",
    "cuda check --feedstock FEEDSTOCK",
    "cuda audit",
    "dossier --feedstock FEEDSTOCK --output FOLDER/dossier",
    "publish FOLDER/channel --feedstock FEEDSTOCK",
    "clean --dry-run --feedstock FEEDSTOCK",
    "ci --matrix github --feedstock FEEDSTOCK",
    "cuda search libtorch",
    "cuda show",
    "cuda show 12.9",
    "cuda archs cuda=12.9",
    "cuda resolve cuda=12.9 python=3.12",
    "cuda explain cuda=12.9 gcc=15",
    "cuda gpu",
    "cuda gpu RTX\\ 4090",
    "cuda env pytorch",
    "cuda variants",
    "pinning --pinning PINNING",
    "smithy list",
    "many list FOLDER/index",
    "collect FOLDER/other",
    "init FOLDER/nothing",
    "fleet status --fleet FOLDER/hosts",
    "--help",
    "build --help",
    "edit --help",
    "fleet --help",
)
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07")
#: What somebody may copy: a name with a dash, an underscore, a slash or a dot within it.
_NAME = re.compile(r"[\w.*@~+-]*[\w*][-_/.=][\w][\w./*=@+-]*")


@dataclass(frozen=True, slots=True)
class Screen:
    """What a command printed in a terminal of a width."""

    exit_code: int
    lines: tuple[str, ...]
    width: int

    @property
    def too_wide(self) -> int:
        return sum(len(line) > self.width for line in self.lines)

    @property
    def broken(self) -> int:
        """Names that lie across the edge of the terminal."""
        edges = [(line, edge) for line in self.lines for edge in range(self.width, len(line), self.width)]
        return sum(any(name.start() < edge < name.end() for name in _NAME.finditer(line)) for line, edge in edges)

    @property
    def repeated(self) -> int:
        """Lines of some words that were there before."""
        seen = Counter(line.strip() for line in self.lines if len(line.split()) > 2)
        return sum(number - 1 for number in seen.values())


def screen(words: Sequence[str], width: int, folder: Path) -> Screen:
    """Run a command of feedstock-tools in a terminal of a width."""
    import pexpect

    environment = {**os.environ, "TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder / ".cache")}
    line = ["-m", "feedstock_tools", *words]
    child = pexpect.spawn(
        sys.executable, line, cwd=folder, env=environment, dimensions=(50, width), timeout=120, encoding="utf-8",
        codec_errors="replace",
    )  # fmt: skip
    child.sendeof()  # nothing is answered to a question
    text = child.read()
    child.close()
    last = [part.split("\r")[-1] for part in _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")]
    return Screen(child.exitstatus or 0, tuple(line.rstrip() for line in last), width)


def filled(word: str, named: Mapping[str, str]) -> str:
    """A word of a command with what its names in capitals stand for."""
    return re.sub("|".join(named), lambda found: named[found[0]], word)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pinning", type=Path)
    parser.add_argument("feedstocks", type=Path, nargs="+")
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--only", default="", metavar="TEXT", help="the commands that begin with this text")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write what was printed to this folder")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="screens-") as name:
        folder = Path(name)
        for feedstock in arguments.feedstocks:
            copy = folder / feedstock.name
            subprocess.run(["git", "clone", "-q", str(feedstock.resolve()), str(copy)], check=True)
            pinning = str(arguments.pinning.resolve())
            named = {"FEEDSTOCK": str(copy), "FOLDER": str(folder), "PINNING": pinning, "HASH": "0" * 64}
            for command in COMMANDS:
                if not command.startswith(arguments.only):
                    continue
                if "FEEDSTOCK" not in command and feedstock != arguments.feedstocks[0]:
                    continue
                words = [filled(word, named) for word in shlex.split(command)]
                for width in arguments.widths:
                    found = screen(words, width, folder)
                    if arguments.keep:
                        arguments.keep.mkdir(parents=True, exist_ok=True)
                        slug = re.sub(r"\W+", "-", f"{feedstock.name}-{command}-{width}")
                        (arguments.keep / f"{slug}.txt").write_text("\n".join(found.lines), encoding="utf-8")
                    widest = max(map(len, found.lines))
                    numbers = (
                        width,
                        found.exit_code,
                        len(found.lines),
                        widest,
                        found.too_wide,
                        found.broken,
                        found.repeated,
                    )
                    rows.append((feedstock.name, command, *map(str, numbers)))
    head = ("feedstock", "command", "columns", "exit", "lines", "widest", "too wide", "broken", "repeated")
    print(table(head, rows, right=frozenset(range(2, 9))))
    wide = sum(row[6] != "0" for row in rows)
    print(f"{counted(len(rows), 'screen')}, {wide} with lines that are too wide")


if __name__ == "__main__":
    main()
