"""Rehearse builds: solve every environment of every output before anything is built.

Outputs that are not built yet are represented by records with their planned name, version, build and requirements.
Run exports and pins follow from earlier solutions, as in a real build.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.check.promised import Promised
from feedstock_tools.check.rehearsal.demands import Demands, Row
from feedstock_tools.check.rehearsal.model import Environment, Rehearsal
from feedstock_tools.check.rehearsal.row_environments import RowEnvironments
from feedstock_tools.check.rehearsal.users import Offer, picks_of
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted

#: Called with the number of environments solved so far.
Progress = Callable[[int], None]


def rehearse(
    rows: Sequence[tuple[Row, Sequence[Demands]]],
    channels: Mapping[str, Sequence[str]],
    *,
    drivers: Sequence[str] = (),
    why_incomplete: str | None = None,
    at_once: int | None = None,
    progress: Progress = lambda _count: None,
) -> Rehearsal:
    """Solve all environments of some rows, and determine which builds users would get.

    Args:
        rows: each with its outputs in build order (`demands_of`).
        channels: by subdir, for platforms and builders; the first has priority.
        drivers: CUDA versions of drivers that users may have.
        why_incomplete: why packages that exist may be missing, if so: these are then unknown and not mistakes.
        at_once: the number of solvers that run in parallel; default: one for each core.

    Raises:
        WorkError: a channel cannot be read.
    """
    return wait_for(_rehearse(rows, channels, drivers, why_incomplete, at_once or os.cpu_count() or 1, progress))


async def _rehearse(
    rows: Sequence[tuple[Row, Sequence[Demands]]],
    channels: Mapping[str, Sequence[str]],
    drivers: Sequence[str],
    why_incomplete: str | None,
    at_once: int,
    progress: Progress,
) -> Rehearsal:
    count = 0
    stage(f"solving the environments of {counted(len(rows), 'row')}")

    def done() -> None:
        nonlocal count
        count += 1
        progress(count)

    solver = ManySolves(channels, at_once=at_once, done=done)
    try:
        own = frozenset(output.name.lower() for _, outputs in rows for output in outputs)
        works = [
            RowEnvironments(row, outputs, solver, own, partial=why_incomplete is not None) for row, outputs in rows
        ]
        await _together(work.build_and_host() for work in works)
        everywhere = _noarch(work.promised for work in works)
        await _together(work.run_and_test(everywhere, _of_same_job(work, works)) for work in works)
        offers = [
            Offer(work.row.platform, work.row.cuda, installable) for work in works for installable in work.installable
        ]
        picks = await picks_of(offers, own, drivers, solver)
    finally:
        solver.close()
    environments = tuple(environment for work in works for environment in work.environments)
    listed = tuple(dict.fromkeys(channel for some in channels.values() for channel in some))
    return Rehearsal(_each_once(environments), picks, listed, solver.count, why_incomplete)


def _of_same_job(work: RowEnvironments, works: Iterable[RowEnvironments]) -> list[RowEnvironments]:
    """The other rows of the configuration that a row is of: one job builds all of them."""
    name = work.row.configuration.name
    return [other for other in works if other is not work and other.row.configuration.name == name]


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; the first error ends the others and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _noarch(rows: Iterable[Mapping[str, Promised]]) -> tuple[Promised, ...]:
    """The noarch outputs of all rows, which one configuration builds for the others."""
    by_file = {
        output.record.file_name: output for row in rows for output in row.values() if output.record.subdir == "noarch"
    }
    return tuple(by_file.values())


def _each_once(environments: Sequence[Environment]) -> tuple[Environment, ...]:
    return tuple(dict.fromkeys(environments))
