"""Rehearse builds: solve every environment of every output before anything is built, or take a cached answer.

Outputs that are not built yet are represented by records with their planned name, version, build and requirements.
Run exports and pins follow from earlier solutions, as in a real build.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.channel.repodata import repodata_state
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.check.demands import Demands, Promised, Row, demands_of
from feedstock_tools.check.rehearsal.model import Environment, Rehearsal
from feedstock_tools.check.rehearsal.row_environments import RowEnvironments
from feedstock_tools.check.rehearsal.users import Offer, picks_of
from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files, stamp_of_files
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.configurations.rows import NO_LOOP, cuda_version, rows_of
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.stages import stage
from feedstock_tools.versions import parse_version
from feedstock_tools.wording import counted

_CACHE = "rehearsals"
#: The number of cached answers.
_KEPT = 16

Rows = Sequence[tuple[Row, Sequence[Demands]]]
#: Called with the number of environments solved so far.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RehearsalChannels:
    """The channels to solve in.

    Attributes:
        by_subdir: names, URLs or folders, the first preferred, by the subdir of a platform or of its builders.
        why_incomplete: why packages that exist may be missing, if so: these then count as unknown, not as mistakes.
    """

    by_subdir: Mapping[str, Sequence[str]]
    why_incomplete: str | None = None

    @classmethod
    def everywhere(cls, channels: Sequence[str], platforms: Iterable[Platform]) -> RehearsalChannels:
        """The same channels for all platforms."""
        return cls({platform.subdir: tuple(channels) for platform in platforms})


def rehearse_feedstock(
    feedstock: Feedstock,
    artifacts: Artifacts,
    configurations: Sequence[Configuration],
    channels: RehearsalChannels,
    *,
    fresh: bool = False,
    progress: Progress = lambda _count: None,
) -> Rehearsal:
    """Rehearse configurations of a feedstock, or recall the answer to the same question.

    Args:
        artifacts: the artifacts folder with the cached answers.
        channels: for all of `platforms_of` the configurations.
        fresh: ignore cached answers.

    Raises:
        InputError: the feedstock or its recipe is invalid.
        WorkError: a channel cannot be read.
    """
    key = _key(feedstock.inputs, configurations, channels.by_subdir)
    cached = artifacts.recall(_CACHE)
    remembered: dict[str, Any] = cached if isinstance(cached, dict) else {}
    if key is not None and not fresh and (rehearsed := _from_cache(remembered.get(key))) is not None:
        return rehearsed
    rehearsal = rehearse_configurations(feedstock.folder, configurations, channels, progress=progress)
    if key is not None:
        latest = [(name, answer) for name, answer in remembered.items() if name != key][-_KEPT + 1 :]
        artifacts.remember(_CACHE, {**dict(latest), key: rehearsal.to_json()})
    return rehearsal


def rehearse_configurations(
    feedstock: Path,
    configurations: Sequence[Configuration],
    channels: Sequence[str] | RehearsalChannels,
    *,
    rules: Rules | None = None,
    progress: Progress = lambda _count: None,
    bounds: Bounds | None = None,
) -> Rehearsal:
    """Solve every environment of some configurations, and determine which builds users would get; nothing is cached.

    Args:
        channels: names, URLs or folders for all platforms, the first has priority; or channels by subdir.
        rules: the version of conda-build that renders a `meta.yaml`; default: the newest.
        progress: never called with bounds.
        bounds: what the work may take, in a child process, such as `SOLVING`; None to do it in this process.

    Raises:
        InputError: recipe, configuration or conda-forge.yml is invalid; with file and line.
        WorkError: a channel cannot be read.

    >>> feedstock = Path("solver-feedstock")
    >>> found = rehearse(feedstock, read_configurations(feedstock)[:1], ["./empty-channel"])
    >>> found.holds, found.environments[0].reason
    (False, 'no channel has cuda-nvcc_linux-64, gxx_linux-64')
    """
    if bounds is not None:
        work = partial(rehearse_configurations, feedstock, configurations, channels, rules=rules)
        return run_bounded(work, bounds)
    chosen = rules or Rules.newest()
    forge = read_forge(feedstock, chosen)
    platforms = platforms_of(forge, configurations)
    if not isinstance(channels, RehearsalChannels):
        channels = RehearsalChannels.everywhere(channels, platforms)
    rows = rows_to_rehearse(feedstock, configurations, chosen, forge)
    drivers = drivers_to_ask(platforms)
    return rehearse(
        rows, channels.by_subdir, drivers=drivers, why_incomplete=channels.why_incomplete, progress=progress
    )


def drivers_to_ask(platforms: Iterable[Platform]) -> list[str]:
    """The CUDA versions of drivers that a rehearsal asks, oldest first: each since the first that conda-forge built for
    on one of the platforms, those that it never built for included; empty for platforms without CUDA."""
    facts = load_cuda()
    built = [parse_version(version) for platform in platforms for version in facts.versions(platform)]
    versions = sorted(facts.toolkits, key=parse_version)
    return [version for version in versions if built and parse_version(version) >= min(built)]


def rows_to_rehearse(
    feedstock: Path, configurations: Sequence[Configuration], rules: Rules, forge: Forge | None = None
) -> Rows:
    """Each row of some configurations with the requirements of its outputs.

    Args:
        forge: the feedstock's conda-forge.yml, if already read.

    Raises:
        InputError: the recipe, a configuration or conda-forge.yml is invalid; with file and line.
    """
    forge = forge or read_forge(feedstock, rules)
    rows = []
    for configuration in configurations:
        builder = forge.builder_of(configuration.platform)
        for row in rows_of(configuration):
            values = {key: (value,) for key, value in row.values.items()}
            kept = {key: configuration.values[key] for key in NO_LOOP & configuration.values.keys()}
            single = replace(configuration, values={**kept, **values})
            rehearsed = Row(row.name, single, builder, cuda_version(row.values))
            rows.append((rehearsed, demands_of(feedstock / forge.recipe_dir, rehearsed, rules, v1=forge.is_v1)))
    return rows


def platforms_of(forge: Forge, configurations: Sequence[Configuration]) -> list[Platform]:
    """The platforms of configurations and of their build machines."""
    own = {configuration.platform for configuration in configurations}
    return sorted(own | {forge.builder_of(platform) for platform in own})


def _key(
    inputs: Sequence[Path], configurations: Sequence[Configuration], channels: Mapping[str, Sequence[str]]
) -> str | None:
    """A hash of all inputs of an answer; None if a channel does not report its state."""
    states = [repodata_state(channel, (subdir, "noarch")) for subdir, listed in channels.items() for channel in listed]
    if any(state is None for state in states):
        return None
    own = f"{__version__} {sys.version_info[:2]} {stamp_of_files([PACKAGE, data_folder('variants')])}"
    # Names on the command line may leave out rows of a configuration, so its values count.
    rows = [(configuration.name, sorted(configuration.values.items())) for configuration in configurations]
    return sha256("\0".join(map(str, [own, digest_of_files(inputs), *rows, *states])).encode()).hexdigest()


def _from_cache(document: Any) -> Rehearsal | None:
    """A cached answer; None if there is none, or only one from another version of this program."""
    try:
        return Rehearsal.from_json(document)
    except (KeyError, TypeError):
        return None


def rehearse(
    rows: Rows,
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
    rows: Rows,
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
