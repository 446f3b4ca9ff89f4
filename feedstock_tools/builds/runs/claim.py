"""The claim of a run on a row: the locks of its outputs, and what of it is done, once killed runs are settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.runs.under_way import lock_name
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.files.locks import Locks, locked


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that no other run builds meanwhile: the records of its finished outputs, and the missing ones.

    Close the locks at the end.
    """

    locks: Locks
    done: tuple[BuildRecord, ...]
    wanted: tuple[PlannedOutput, ...]


def claim(artifacts: Artifacts, ledger: Ledger, work: Work, *, stand_in: bool) -> Claim | None:
    """Claim a row, and settle what a killed run left of it; None while another run builds one of its outputs.

    Args:
        stand_in: whether it is built on the stand-in channel.

    Raises:
        WorkError: the ledger or the channel cannot be used.
    """
    names = _lock_names(work, _finished(ledger, work), stand_in=stand_in)
    locks = Locks.take(artifacts.locks, names)
    if locks is None:
        return None
    try:
        if ledger.settle(work.name, list(work.identities.values())):
            _tidy(artifacts, stand_in=stand_in)
        finished = _finished(ledger, work)
        if not set(_lock_names(work, finished, stand_in=stand_in)) <= set(names):
            locks.close()
            return None  # a package has disappeared meanwhile
    except BaseException:
        locks.close()
        raise
    wanted = tuple(output for output in work.row.outputs if finished[output.name] is None)
    return Claim(locks, tuple(record for record in finished.values() if record is not None), wanted)


def _lock_names(work: Work, finished: Mapping[str, BuildRecord | None], *, stand_in: bool) -> tuple[str, ...]:
    """The locks for building a row: the row, and each of its missing outputs, by place."""
    missing = [output for output in work.row.outputs if finished[output.name] is None]
    return (f"row {work.name}", *(lock_name(output, stand_in=stand_in) for output in missing))


def _finished(ledger: Ledger, work: Work) -> dict[str, BuildRecord | None]:
    """The record of each finished output of a row."""
    return {output.name: ledger.done(work.identities[output.name]) for output in work.row.outputs}


def _tidy(artifacts: Artifacts, *, stand_in: bool) -> None:
    """Clean up after a killed run: parts of packages, a possibly outdated index."""
    channel = artifacts.channel(stand_in=stand_in)
    with locked(channel):
        for part in channel.glob("*/.*.part"):
            part.unlink(missing_ok=True)
        index_channel(channel, replaced=True)
