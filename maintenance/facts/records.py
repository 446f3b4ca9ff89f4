"""The records of facts in `tests/facts/recorded`: what clones and wheels said, so that tests need neither."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "facts" / "recorded"

Entry = dict[str, Any]


def git(clone: Path, *words: str) -> str:
    """The output of a git command in a clone, bare or not."""
    return subprocess.run(["git", "-C", str(clone), *words], check=True, capture_output=True, text=True).stdout


def read_table(name: str) -> dict[str, Entry]:
    """A recorded table; empty if there is none."""
    path = RECORDED / f"{name}.json"
    found: dict[str, Entry] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def write_table(name: str, table: Mapping[str, Entry]) -> None:
    """Record a table."""
    text = json.dumps(table, indent=1, ensure_ascii=False)
    path = RECORDED / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def say(*lines: str) -> None:
    """Print lines at once, so that a long run shows where it is."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Release:
    """A release on an index, with the entry that a table has of it.

    Attributes:
        key: of the entry.
        read: makes the entry; gets the earlier one, if there is one.
        complete: whether an earlier entry has all that `read` would find.
        shown: the entry in a few words.
    """

    key: str
    read: Callable[[Entry | None], Entry]
    complete: Callable[[Entry], bool] = bool
    shown: Callable[[Entry], object] = str


def read_new(releases: Iterable[Release], table: dict[str, Entry], again: bool, write: Callable[[], None]) -> int:
    """Read the releases that a table lacks into it; return how many differ from it or could not be read.

    Args:
        again: read those that the table has, too.
        write: is called after each release that was read, since a run may take hours.
    """
    wrong = 0
    for release in releases:
        before = table.get(release.key)
        if before is not None and not again and release.complete(before):
            continue
        try:
            entry = release.read(before)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            wrong += 1
            say(f"{release.key}: not read: {error}")
            continue
        if entry == before:
            continue
        differs = before is not None and contradicts(before, entry)
        wrong += differs
        say(f"{release.key}: {'differs' if differs else 'read'} {release.shown(entry)}")
        table[release.key] = entry
        write()
    return wrong


def contradicts(before: object, after: object) -> bool:
    """Whether two entries have different values of something that both have."""
    if isinstance(before, dict) and isinstance(after, dict):
        return any(contradicts(before[key], after[key]) for key in before.keys() & after.keys() - {"unread"})
    return before != after
