"""`feedstock-tools rerender DIR... --jobs N`: outcomes as they come, progress, and a summary."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.cli.printing import overwrite, say, say_json, wipe
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.rerender.many import RerenderedFeedstock
    from feedstock_tools.rerender.record import Record
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.smithy.releases.release import Release

__all__ = ["Given", "Many", "rerender_all"]


@dataclass(frozen=True, slots=True)
class Given:
    """What all feedstocks share, and whether they are written."""

    pinning: Path | None
    rules: Rules
    release: Release | None
    write: bool


@dataclass(frozen=True, slots=True)
class Many:
    """How many work in parallel, the migration to lay on them, and the record of outcomes."""

    jobs: int
    migration: Path | None
    resume: Path | None


def rerender_all(feedstocks: Sequence[Path], given: Given, many: Many, *, as_json: bool) -> bool:
    """Rerender feedstocks and print the outcomes; whether none failed and, unless they are written, none changes."""
    from feedstock_tools.bounds.held import released
    from feedstock_tools.rerender.record import opened_record

    began = time.monotonic()
    found: list[RerenderedFeedstock] = []
    record = opened_record(many.resume, _options(given, many)) if many.resume else nullcontext()
    with record as kept, released():  # each feedstock has bounds of its own
        found += _earlier(feedstocks, kept)
        left = [each for each in feedstocks if kept is None or not kept.has(each)]
        for done in _outcomes(left, given, many):
            if kept is not None:
                kept.add(done)
            found.append(done)
            _show(done, len(found), len(feedstocks), as_json=as_json)
    if as_json:
        say_json([_as_json(each) for each in found])
    _say_summary(found, len(left), time.monotonic() - began)
    bad = {"refused", "failed"} if given.write else {"refused", "failed", "changed"}
    return not any(each.outcome in bad for each in found)


def _outcomes(feedstocks: Sequence[Path], given: Given, many: Many) -> Iterator[RerenderedFeedstock]:
    from feedstock_tools.rerender.many import rerender_many

    return rerender_many(
        feedstocks,
        pinning=given.pinning,
        rules=given.rules,
        smithy=given.release,
        migration=many.migration,
        write=given.write,
        jobs=many.jobs,
    )


def _earlier(feedstocks: Sequence[Path], record: Record | None) -> list[RerenderedFeedstock]:
    if record is None:
        return []
    return [record.earlier[str(each.resolve())] for each in feedstocks if record.has(each)]


def _options(given: Given, many: Many) -> dict[str, str | None]:
    """What outcomes depend on, for the record."""

    def digest(path: Path | None) -> str | None:
        return sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else None

    return {
        "rules": given.rules.name,
        "release": given.release.version or str(given.release.folder) if given.release else None,
        "pinning": digest(given.pinning),
        "migration": digest(many.migration),
        "writing": "yes" if given.write else "no",
    }


def _show(done: RerenderedFeedstock, number: int, total: int, *, as_json: bool) -> None:
    if sys.stderr.isatty():
        wipe()
    if not as_json:
        detail = counted(len(done.changes), "file") if done.changes else done.reason.partition("\n")[0]
        say(f"{done.outcome}  {done.feedstock}{f': {detail}' if detail else ''}")
    if sys.stderr.isatty() and number < total:
        overwrite(f"{number} of {total}")


def _as_json(found: RerenderedFeedstock) -> dict[str, object]:
    return {
        "feedstock": str(found.feedstock),
        "outcome": found.outcome,
        "reason": found.reason,
        "changes": [{"file": name, "change": kind} for kind, name in found.changes],
        "notes": list(found.notes),
        "seconds": round(found.seconds, 3),
    }


def _say_summary(found: Sequence[RerenderedFeedstock], now: int, seconds: float) -> None:
    from feedstock_tools.rerender.many import OUTCOMES

    counts = Counter(each.outcome for each in found)
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    earlier = f", {len(found) - now} of them by an earlier run" if len(found) > now else ""
    say(f"{counted(len(found), 'feedstock')}: {parts or 'nothing to do'}{earlier}", err=True)
    if now:
        say(f"{now / max(seconds, 1e-9):.1f} a second", err=True)
