"""Rehearse builds: solve every environment of every output before anything is built, or take a cached answer.

Outputs that are not built yet are represented by records with their planned name, version, build and requirements.
Run exports and pins follow from earlier solutions, as in a real build.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from feedstock_tools import __version__
from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.channel.calls import wait_for
from feedstock_tools.channel.many_solves import Answer, ManySolves
from feedstock_tools.channel.metadata import RunExports
from feedstock_tools.channel.repodata import repodata_state
from feedstock_tools.channel.solving import Question, only_lacks, virtual_packages
from feedstock_tools.check.choices import Offer, Pick, Promised, picks_of, promise
from feedstock_tools.check.findings import Check, Verdict, checks_values, verdict_of
from feedstock_tools.data import PACKAGE, data_folder
from feedstock_tools.digests import digest_of_files, stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.recipe.requirements import Pin, Requirement, spec_name
from feedstock_tools.rerender.configuration import NO_LOOP, Configuration, cuda_version, rows_of
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.stages import stage
from feedstock_tools.versions import parse_version
from feedstock_tools.wording import counted

#: The reason for environments that were not tried.
FOLLOWS = "it depends on a build or host environment without a solution"

#: `waiting`: not tried, since an environment that it depends on does not solve. `unknown`: the available channels
#: are incomplete, and lack a package of it or of one that it depends on.
State = Literal["solved", "failed", "waiting", "unknown"]


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment of one output in one row: `kind` is `build`, `host`, `run` or `test`.

    `packages` counts those of the solution; `reason` explains why there is none. `by_time` names builds of other
    feedstocks chosen only by time stamps, with the alternative; this is not a mistake of this feedstock.
    """

    configuration: str
    row: str
    output: str
    kind: str
    platform: str
    state: State
    packages: int = 0
    reason: str | None = None
    by_time: str | None = None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All environments of some configurations, and the builds that users would get.

    `solved` counts the different environments that were solved; `why_incomplete` is the reason why the channels lack
    packages that exist, None if they do not.
    """

    environments: tuple[Environment, ...]
    picks: tuple[Pick, ...]
    channels: tuple[str, ...]
    solved: int
    why_incomplete: str | None = None

    @property
    def checks(self) -> tuple[Check, Check]:
        """Whether environments solve, and whether users would get the intended builds."""
        states = Counter(environment.state for environment in self.environments)
        lacking = f"{states['unknown']} of {len(self.environments)} environments lack packages in incomplete channels"
        unknown = lacking if states["unknown"] else ""
        return (
            Check.of("environments", wrong=bool(states["failed"] + states["waiting"]), unknown=unknown),
            Check.of("choices for users", wrong=any(pick.mistake for pick in self.picks), unknown=unknown),
        )

    @property
    def verdict(self) -> Verdict:
        """That of both checks together."""
        return verdict_of(self.checks)

    def to_json(self) -> dict[str, Any]:
        """As a document of JSON, with the verdict and the checks."""
        content = asdict(self)
        why = content.pop("why_incomplete")
        return {**checks_values(self.checks), **content, "stand_in": why}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Rehearsal:
        """The inverse of `to_json`; `KeyError` or `TypeError` for any other document."""
        return cls(
            environments=tuple(Environment(**content) for content in document["environments"]),
            picks=tuple(Pick(**content | {"by_time": tuple(content["by_time"])}) for content in document["picks"]),
            channels=tuple(document["channels"]),
            solved=int(document["solved"]),
            why_incomplete=document["stand_in"],
        )


#: The glibc of conda-forge's images, by the part of their names that identifies the system.
_GLIBC = {"cos6": "2.12", "cos7": "2.17", "alma8": "2.28", "alma9": "2.34", "alma10": "2.39"}
_GLIBC_OF_OTHERS = "2.28"


@dataclass(frozen=True, slots=True)
class RehearsedRow:
    """One variant of a configuration, and the packages that it makes, in build order.

    `configuration` has one value for each key and the usual name; `builder` is the platform that it is built on.
    """

    name: str
    configuration: Configuration
    builder: Platform
    packages: Sequence[Package]

    @property
    def platform(self) -> Platform:
        return self.configuration.platform

    @property
    def cuda(self) -> str | None:
        """The CUDA version that it compiles for; None for a CPU build."""
        return cuda_version({key: values[0] for key, values in self.configuration.values.items() if values})


class RowEnvironments:
    """The work on one row; `environments`, `promised` and `installable` fill up as it goes on.

    Args:
        own: the names of all outputs of the feedstock, also of other rows.
        partial: the channels are incomplete.
    """

    def __init__(self, row: RehearsedRow, solver: ManySolves, own: frozenset[str], *, partial: bool) -> None:
        self.row = row
        self.environments: list[Environment] = []
        self.promised: dict[str, Promised] = {}
        self.installable: list[Promised] = []
        self._solver = solver
        self._own = own
        self._partial = partial
        self._blocked: dict[str, State] = {}

    async def build_and_host(self) -> None:
        """Solve the build and host environments, which determine the requirements of packages."""
        for package in self.row.packages:
            await self._prepare(package)

    async def run_and_test(self, everywhere: Sequence[Promised], same_job: Sequence[RowEnvironments]) -> None:
        """Solve the run and test environments.

        Args:
            everywhere: noarch outputs of other rows, which may be built elsewhere.
            same_job: the other rows of the configuration, whose outputs are built in the same job.
        """
        others = {package.record.file_name: package for package in everywhere}
        for row in same_job:
            others |= {package.record.file_name: package for package in row.promised.values()}
            missing = row._blocked.keys() - self.promised.keys()
            self._blocked |= {name: row._blocked[name] for name in missing}
        visible = [*self.promised.values()]
        visible += [package for package in others.values() if package.record.name not in self.promised]
        for package in self.row.packages:
            await self._use(package, visible)

    async def _prepare(self, package: Package) -> None:
        before = list(self.promised.values())
        built = await self._solve(package, "build", self._resolved(package.build, {}), before, self.row.builder)
        from_build = await self._exports(package, package.build, built)
        joint = package.host is None and self.row.builder == self.row.platform
        wanted = (*self._resolved(package.host or (), {}), *from_build.strong)
        hosted = await self._solve(package, "host", wanted, before, self.row.platform) if not joint else built
        from_host = await self._exports(package, package.build if joint else (package.host or ()), hosted)
        versions = {
            name: (solved.version, solved.build) for name, solved in (hosted.packages if hosted else {}).items()
        }
        if built is None or hosted is None:
            failed = any(
                environment.output == package.name and environment.state == "failed"
                for environment in self.environments
            )
            self._blocked[package.name.lower()] = "waiting" if failed else "unknown"
        depends, constrains = _inherited(package, from_build, from_host)
        depends = (*self._at_run_time(package, versions), *depends)
        exports = RunExports.from_json(
            {kind: self._resolved(specs, versions, package) for kind, specs in package.run_exports.items()}
        )
        limits = (*self._resolved(package.constrains, versions, package), *constrains)
        self.promised[package.name.lower()] = promise(package, depends, limits, exports)

    async def _use(self, package: Package, visible: Sequence[Promised]) -> None:
        own = self.promised[package.name.lower()]
        kinds = {"run": ((),), "test": package.tested_with}
        for kind, tests in kinds.items():
            for test in dict.fromkeys(tests):
                specs = (own.spec, *self._resolved(test, {}))
                answer = await self._solve(package, kind, specs, visible, self.row.platform)
                if kind == "run" and answer is not None:
                    self.installable.append(own)

    def _at_run_time(self, package: Package, packages: Mapping[str, tuple[str, str]]) -> Iterable[str]:
        """Its own requirements at run time; bare names in `pin_run_as_build` follow the host environment."""
        for spec in self._resolved(package.run, packages, package):
            bounds = package.run_pins.get(spec)
            if bounds and spec in packages and not (package.output.noarch and spec == "python"):
                pin = Pin(spec, compatible=True, lower=bounds.get("min_pin"), upper=bounds.get("max_pin"))
                yield pin.applied(*packages[spec])
            else:
                yield spec

    def _resolved(
        self,
        requirements: Iterable[Requirement],
        packages: Mapping[str, tuple[str, str]],
        itself: Package | None = None,
    ) -> tuple[str, ...]:
        """Requirements with their pins applied; a pin on an unknown package becomes its bare name."""
        pinned = {name: (package.record.version, package.record.build) for name, package in self.promised.items()}
        pinned |= {
            each.name.lower(): (each.output.version, each.output.build_string)
            for each in self.row.packages
            if each.name not in pinned
        }
        if itself is not None:
            pinned[itself.name.lower()] = (itself.output.version, itself.output.build_string)
        return tuple(
            requirement
            if isinstance(requirement, str)
            else _applied(requirement, packages if requirement.compatible else pinned)
            for requirement in requirements
        )

    async def _exports(
        self, package: Package, requirements: Iterable[Requirement], answer: Answer | None
    ) -> RunExports:
        """The run exports of an environment's requested packages, except those that the recipe ignores."""
        if answer is None:
            return RunExports()
        requested = set(map(name_in, requirements))
        specs_of_kinds: dict[str, list[str]] = {}
        for name in sorted(requested & answer.packages.keys() - package.ignored_from):
            own = self.promised.get(name)
            exports = own.run_exports if own else await self._solver.run_exports(answer.packages[name])
            for kind, specs in exports.to_json().items():
                specs_of_kinds.setdefault(kind, []).extend(
                    spec for spec in specs if spec_name(spec) not in package.ignored
                )
        return RunExports.from_json(specs_of_kinds)

    async def _solve(
        self, package: Package, kind: str, specs: Sequence[str], visible: Sequence[Promised], platform: Platform
    ) -> Answer | None:
        """Solve one environment and record the result; None if there is no solution."""
        if not specs:
            return Answer({})
        state, answer = await self._outcome(kind, specs, visible, platform)
        count, by_time = len(answer.packages), "\n".join(f"{first} or {other}" for first, other in answer.by_time)
        name, row = self.row.configuration.name, self.row.name
        self.environments.append(
            Environment(name, row, package.name, kind, platform.subdir, state, count, answer.reason, by_time or None)
        )
        return answer if state == "solved" else None

    async def _outcome(
        self, kind: str, specs: Sequence[str], visible: Sequence[Promised], platform: Platform
    ) -> tuple[State, Answer]:
        own, others = _reached(specs, visible)
        absent = sorted(others - await self._solver.names(platform))
        if own_absent := [name for name in absent if name in self._own]:
            lacks = "is an output of this feedstock, but this configuration does not build it before"
            return "failed", Answer({}, f"{', '.join(own_absent)} {lacks}")
        if absent:
            return "unknown" if self._partial else "failed", Answer({}, f"no channel has {', '.join(absent)}")
        blocked = next((self._blocked[name] for name in sorted(own) if name in self._blocked), None)
        if blocked is not None and kind in ("run", "test"):
            return blocked, Answer({}, FOLLOWS)
        question = Question(tuple(sorted(set(specs))), platform, self._machine(platform))
        try:
            answer = await self._ask(question, visible, uses_own=bool(own))
        except InputError as error:
            answer = Answer({}, str(error))
        if answer.reason is None:
            return "solved", answer
        return "unknown" if self._partial and only_lacks(answer.reason) else "failed", Answer({}, answer.reason)

    async def _ask(self, question: Question, visible: Sequence[Promised], *, uses_own: bool) -> Answer:
        """An environment without outputs of the feedstock is the same for all rows, and solved once."""
        records = [package.record for package in visible]
        if not uses_own:
            answer = await self._solver.solve(question)
            if answer.reason is None and not answer.packages.keys() & {record.name for record in records}:
                return answer
        return await self._solver.solve(question, records)

    def _machine(self, platform: Platform) -> tuple[str, ...]:
        """The virtual packages of the machine that builds and tests, whose driver has the row's CUDA version."""
        images = self.row.configuration.values.get("docker_image") or ("",)
        glibcs = (glibc for word, glibc in _GLIBC.items() if word in images[0])
        return virtual_packages(platform, cuda=self.row.cuda, glibc=next(glibcs, _GLIBC_OF_OTHERS))


def _applied(pin: Pin, packages: Mapping[str, tuple[str, str]]) -> str:
    package = packages.get(pin.name)
    return pin.applied(*package) if package else pin.name


def _reached(specs: Iterable[str], visible: Sequence[Promised]) -> tuple[set[str], set[str]]:
    """The names of the feedstock's own packages that specs depend on, and of all other non-virtual packages."""
    promised = {package.record.name: package for package in visible}
    pending = {spec_name(spec) for spec in specs}
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        seen.add(name)
        if name in promised:
            pending |= {spec_name(spec) for spec in promised[name].record.depends} - seen
    own = seen & promised.keys()
    return own, {name for name in seen - own if not name.startswith("__")}


def _inherited(package: Package, build: RunExports, host: RunExports) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The run requirements and constraints of an output that follow from the packages it was built with."""
    if package.output.noarch:
        return host.noarch, ()
    return (*build.strong, *host.strong, *host.weak), (
        *build.strong_constrains,
        *host.strong_constrains,
        *host.weak_constrains,
    )


_CACHE = "rehearsals"
#: The number of cached answers.
_KEPT = 16

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
    """
    key = _key(feedstock.inputs, configurations, channels.by_subdir)
    cached = artifacts.recall(_CACHE)
    remembered: dict[str, Any] = cached if isinstance(cached, dict) else {}
    if key is not None and not fresh and key in remembered:
        with suppress(KeyError, TypeError):  # an answer from another version of this program
            return Rehearsal.from_json(remembered[key])
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
    >>> str(found.verdict), found.environments[0].reason
    ('wrong', 'no channel has cuda-nvcc_linux-64, gxx_linux-64')
    """
    if bounds is not None:
        work = partial(rehearse_configurations, feedstock, configurations, channels, rules=rules)
        return run_bounded(work, bounds)
    chosen = rules or Rules.newest()
    forge = read_forge(feedstock, chosen)
    platforms = platforms_of(forge, configurations)
    if not isinstance(channels, RehearsalChannels):
        channels = RehearsalChannels({platform.subdir: tuple(channels) for platform in platforms})
    rows = rows_to_rehearse(feedstock, configurations, chosen, forge)
    return rehearse(rows, channels, drivers=_drivers_to_ask(platforms), progress=progress)


def _drivers_to_ask(platforms: Iterable[Platform]) -> list[str]:
    """The CUDA versions of drivers that a rehearsal asks, oldest first: each since the first that conda-forge built for
    on one of the platforms, those that it never built for included; empty for platforms without CUDA."""
    facts = load_cuda()
    built = [parse_version(version) for platform in platforms for version in facts.versions(platform)]
    versions = sorted(facts.toolkits, key=parse_version)
    return [version for version in versions if built and parse_version(version) >= min(built)]


def rows_to_rehearse(
    feedstock: Path, configurations: Sequence[Configuration], rules: Rules, forge: Forge | None = None
) -> list[RehearsedRow]:
    """Each row of some configurations with its packages.

    Args:
        forge: the feedstock's conda-forge.yml, if already read.
    """
    forge = forge or read_forge(feedstock, rules)
    rows = []
    for configuration in configurations:
        builder = forge.builder_of(configuration.platform)
        for row in rows_of(configuration):
            values = {key: (value,) for key, value in row.values.items()}
            kept = {key: configuration.values[key] for key in NO_LOOP & configuration.values.keys()}
            single = replace(configuration, values={**kept, **values})
            packages = packages_of(feedstock / forge.recipe_dir, single, builder, rules, v1=forge.is_v1)
            distinct = {package.output.file_stem: package for package in packages}
            rows.append(RehearsedRow(row.name, single, builder, tuple(distinct.values())))
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


def rehearse(
    rows: Sequence[RehearsedRow],
    channels: RehearsalChannels,
    *,
    drivers: Sequence[str] = (),
    progress: Progress = lambda _count: None,
) -> Rehearsal:
    """Solve all environments of some rows, and determine which builds users with one of the drivers would get.

    Raises:
        WorkError: a channel cannot be read.
    """
    return wait_for(_rehearse(rows, channels, drivers, progress))


async def _rehearse(
    rows: Sequence[RehearsedRow], channels: RehearsalChannels, drivers: Sequence[str], progress: Progress
) -> Rehearsal:
    count = 0
    stage(f"solving the environments of {counted(len(rows), 'row')}")

    def done() -> None:
        nonlocal count
        count += 1
        progress(count)

    solver = ManySolves(channels.by_subdir, at_once=os.cpu_count() or 1, done=done)
    try:
        own = frozenset(package.name.lower() for row in rows for package in row.packages)
        partial = channels.why_incomplete is not None
        works = [RowEnvironments(row, solver, own, partial=partial) for row in rows]
        await _together(work.build_and_host() for work in works)
        noarch = [each for work in works for each in work.promised.values() if each.record.subdir == "noarch"]
        everywhere = tuple({each.record.file_name: each for each in noarch}.values())
        await _together(work.run_and_test(everywhere, _of_same_job(work, works)) for work in works)
        offers = [
            Offer(work.row.platform, work.row.cuda, installable) for work in works for installable in work.installable
        ]
        picks = await picks_of(offers, own, drivers, solver)
    finally:
        solver.close()
    environments = tuple(dict.fromkeys(environment for work in works for environment in work.environments))
    listed = tuple(dict.fromkeys(channel for some in channels.by_subdir.values() for channel in some))
    return Rehearsal(environments, picks, listed, solver.count, channels.why_incomplete)


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
