"""`feedstock-tools rerender DIR... --jobs N`: outcomes as they come, progress, and a summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted

if TYPE_CHECKING:
    from feedstock_tools.rerender.many import RerenderedFeedstock
    from feedstock_tools.rerender.record import Record
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.smithy.releases.release import Release


@dataclass(frozen=True, slots=True)
class Shared:
    """The options that all feedstocks share: `migration` is applied to each, and `jobs` are rerendered in parallel."""

    pinning: Path | None
    rules: Rules
    release: Release | None
    migration: Path | None
    write: bool
    jobs: int


def rerender_all(feedstocks: Sequence[Path], shared: Shared, resume: Path | None, *, as_json: bool) -> bool:
    """Rerender feedstocks and print the outcomes; whether none failed and, unless they are written, none changes.

    Args:
        resume: the record of outcomes; the feedstocks that it has are skipped.
    """
    from feedstock_tools.bounds.held import released
    from feedstock_tools.rerender.record import opened_record

    began = time.monotonic()
    outcomes: list[RerenderedFeedstock] = []
    opened = opened_record(resume, _options(shared)) if resume else nullcontext()
    with opened as record, released():  # each feedstock has bounds of its own
        outcomes += _earlier(feedstocks, record)
        left = [feedstock for feedstock in feedstocks if record is None or not record.has(feedstock)]
        for outcome in _outcomes(left, shared):
            if record is not None:
                record.add(outcome)
            outcomes.append(outcome)
            _show(outcome, len(outcomes), len(feedstocks), as_json=as_json)
    if as_json:
        say_json([_as_json(outcome) for outcome in outcomes])
    _say_summary(outcomes, len(left), time.monotonic() - began)
    bad = {"refused", "failed"} if shared.write else {"refused", "failed", "changed"}
    return not any(outcome.outcome in bad for outcome in outcomes)


def _outcomes(feedstocks: Sequence[Path], shared: Shared) -> Iterator[RerenderedFeedstock]:
    from feedstock_tools.rerender.many import rerender_many

    return rerender_many(
        feedstocks,
        pinning=shared.pinning,
        rules=shared.rules,
        smithy=shared.release,
        migration=shared.migration,
        write=shared.write,
        jobs=shared.jobs,
    )


def _earlier(feedstocks: Sequence[Path], record: Record | None) -> list[RerenderedFeedstock]:
    if record is None:
        return []
    return [record.earlier[str(feedstock.resolve())] for feedstock in feedstocks if record.has(feedstock)]


def _options(shared: Shared) -> dict[str, str | None]:
    """What outcomes depend on, for the record."""

    def digest(path: Path | None) -> str | None:
        return sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else None

    return {
        "rules": shared.rules.name,
        "release": shared.release.version or str(shared.release.folder) if shared.release else None,
        "pinning": digest(shared.pinning),
        "migration": digest(shared.migration),
        "writing": "yes" if shared.write else "no",
    }


def _show(done: RerenderedFeedstock, number: int, total: int, *, as_json: bool) -> None:
    if not as_json:
        detail = counted(len(done.changes), "file") if done.changes else done.reason.partition("\n")[0]
        say(f"{done.outcome}  {done.feedstock}{f': {detail}' if detail else ''}")
    stage(f"rerender: {number} of {counted(total, 'feedstock')} done")


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
