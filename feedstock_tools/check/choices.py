"""Which build users get, by the driver of their machine: of one state of a feedstock, and before and after a change.

A solver is asked once for each CUDA version, with its builds (or those for CPU) as the newest, or twice where there is
one: if the answers differ, only time stamps decide, and the build that is uploaded last wins.

A change is judged from metadata alone: the packages of both states are a small channel. Of their requirements only
those on each other, on the machine and on `cuda-version` are kept; nothing is fetched. What users have before is the
old state's packages; after it, both states'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.channel.calls import wait_for
from feedstock_tools.channel.many_solves import PROMISED, ManySolves
from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.channel.solving import Question, virtual_packages
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, UsedVariables
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.recipe.requirements import Requirement
from feedstock_tools.rerender.configuration import cuda_version
from feedstock_tools.variants.model import VariantSpace
from feedstock_tools.versions import parse_version

_FLAVOURS = ("-cpu", "-gpu")
#: What a job builds.
Packages = Sequence[Package]


@dataclass(frozen=True, slots=True)
class Promised:
    """The record and the run exports of a package that is not built yet."""

    record: Record
    run_exports: RunExports

    @property
    def spec(self) -> str:
        """The requirement that only this build satisfies."""
        return f"{self.record.name} =={self.record.version} {self.record.build}"


def promise(package: Package, depends: Iterable[str], constrains: Iterable[str], exports: RunExports) -> Promised:
    """The package that an output will be, with requirements and run exports whose pins are applied."""
    output = package.output
    subdir = "noarch" if output.noarch else package.platform.subdir
    file_name = f"{output.file_stem}.conda"
    record = Record(
        name=output.name.lower(),
        version=output.version,
        build=output.build_string,
        build_number=output.build_number,
        subdir=subdir,
        depends=tuple(dict.fromkeys(depends)),
        constrains=tuple(dict.fromkeys(constrains)),
        track_features=package.track_features,
        noarch=output.noarch,
        timestamp=0,
        sha256="",
        size=0,
        file_name=file_name,
        channel=PROMISED,
        url=f"{PROMISED}/{subdir}/{file_name}",
    )
    return Promised(record, exports)


@dataclass(frozen=True, slots=True)
class Pick:
    """The build that a solver chooses for an output's name, on a machine whose driver has a CUDA version (None: no
    GPU).

    `build` is `version build`, None if there is none. `by_time` are the other builds that it chooses if these were
    built last. `mistake` describes the mistake, None for the intended build.
    """

    platform: str
    driver: str | None
    name: str
    build: str | None
    cuda: str | None
    by_time: tuple[str, ...] = ()
    mistake: str | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A package that users can install, and the CUDA version that it is for (None: CPU)."""

    platform: Platform
    cuda: str | None
    package: Promised


@dataclass(frozen=True)
class _Shelf:
    """The packages for a platform: the records, and the CUDA version of each build."""

    platform: Platform
    records: tuple[Record, ...]
    cudas: dict[str, set[str | None]]

    def of(self, name: str) -> set[str | None]:
        """The CUDA versions that an output is built for."""
        return {cuda for record in self.records if record.name == name for cuda in self.cudas[record.distribution]}


async def picks_of(
    offers: Sequence[Offer], outputs: frozenset[str], drivers: Sequence[str], solver: ManySolves
) -> tuple[Pick, ...]:
    """The build that a solver chooses for each platform, machine and name.

    The names are `<name>`, `<name>-cpu` and `<name>-gpu` if outputs come in such flavours; else those that are
    built for several CUDA versions; else all of them.

    Args:
        offers: the packages that can be installed.
        outputs: the names of all outputs of the feedstock.
        drivers: CUDA versions of drivers.
    """
    picks = []
    for platform in sorted({offer.platform for offer in offers}):
        shelf = _shelf(platform, [offer for offer in offers if offer.platform == platform])
        has_gpu = any(cuda for cudas in shelf.cudas.values() for cuda in cudas)
        for name in _names(shelf, outputs):
            for driver in (None, *(drivers if has_gpu else ())):
                picks.append(await _pick(shelf, name, driver, solver))
    return tuple(picks)


def _shelf(platform: Platform, offers: Sequence[Offer]) -> _Shelf:
    cudas: dict[str, set[str | None]] = {}
    records: dict[str, Record] = {}
    for offer in offers:
        record = offer.package.record
        records[record.distribution] = record
        cudas.setdefault(record.distribution, set()).add(offer.cuda)
    return _Shelf(platform, tuple(records[name] for name in sorted(records)), cudas)


def _names(shelf: _Shelf, outputs: frozenset[str]) -> list[str]:
    """The names to test, among those that can be installed."""
    installable = sorted({record.name for record in shelf.records})
    bases = {name.removesuffix(end) for name in outputs for end in _FLAVOURS if name.endswith(end)}
    family = bases | {f"{base}{end}" for base in bases for end in _FLAVOURS}
    if bases:
        return [name for name in installable if name in family]
    return [name for name in installable if len(shelf.of(name)) > 1] or installable


async def _pick(shelf: _Shelf, name: str, driver: str | None, solver: ManySolves) -> Pick:
    """Solve for a name on a machine, in several build orders."""
    versions = sorted({record.version for record in shelf.records if record.name == name})
    spec = f"{name} =={versions[0]}" if len(versions) == 1 else name
    question = Question((spec,), shelf.platform, virtual_packages(shelf.platform, cuda=driver))
    picked: list[str | None] = []
    reason = None
    for order in _orders(shelf, name):
        stamped = [replace(record, timestamp=place * 1000) for place, record in enumerate(order, 1)]
        answer = await solver.solve(question, stamped)
        reason = answer.reason
        package = answer.packages.get(name)
        picked.append(f"{package.version} {package.build}" if package else None)
    build, *_ = picked
    others = tuple(dict.fromkeys(other for other in picked if other is not None and other != build))
    cudas = shelf.cudas.get(f"{name}-{build.replace(' ', '-')}", set()) if build else set()
    cuda = max((version for version in cudas if version), key=parse_version, default=None)
    decided = "only time stamps decide which build users get"
    mistake = decided if others else _mistake(shelf, name, driver, build, cudas, reason)
    return Pick(shelf.platform.subdir, driver, name, build, cuda, others, mistake)


def _orders(shelf: _Shelf, name: str) -> Iterator[Sequence[Record]]:
    """The orders in which the packages may have been built, oldest first: each flavour of a name last."""
    flavours = sorted(shelf.of(name), key=str)
    if len(flavours) == 1:
        yield from (shelf.records, shelf.records[::-1])
        return
    for flavour in flavours:
        yield sorted(shelf.records, key=lambda record: flavour in shelf.cudas[record.distribution])


def _mistake(
    shelf: _Shelf, name: str, driver: str | None, build: str | None, cudas: set[str | None], reason: str | None
) -> str | None:
    """The mistake in a choice; None for the intended build.

    The intended build is that of the newest CUDA version that the driver has; a newer minor version is accepted, since
    drivers run all versions of their own major version. Without a driver it is the CPU build.
    """
    versions = shelf.of(name)
    limit = parse_version(driver or "0")
    runs = [version for version in versions if version and driver and parse_version(version).major <= limit.major]
    least = max((version for version in runs if parse_version(version) <= limit), key=parse_version, default=None)
    wanted: set[str | None] = {
        version for version in runs if least is None or parse_version(version) >= parse_version(least)
    }
    if least is None and None in versions:
        wanted.add(None)
    if build is None:
        return f"nothing can be installed: {reason}" if least or None in versions else None
    if cudas & wanted:
        return None
    built_for = " or ".join(sorted(f"CUDA {version}" if version else "CPU" for version in cudas))
    if not wanted:
        return f"it is for {built_for}, which this machine does not run"
    expected = f"CUDA {least}" if least else "CPU"
    return f"it is for {built_for} instead of {expected}"


_CUDA = "cuda-version"
#: What builds for CUDA 11 and older require in its place.
_TOOLKIT = "cudatoolkit"
#: conda-forge's compilers of CUDA, whose run exports require the driver: cuda-nvcc since 12.0, nvcc before.
_COMPILERS = ("cuda-nvcc_", "nvcc_")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
#: The build in a requirement such as `torch =*=cuda*` or `torch 2.1=cuda*`.
_BUILD = re.compile(r"={0,2}[^=<>!~\s]+=([^=\s]+)")
#: Longer numbers are no CUDA versions.
_LONGEST = 6
#: Several times as many as any feedstock names.
_MOST_DRIVERS = 50
_NO_GPU = "no GPU"


@dataclass(frozen=True, slots=True)
class ChoiceChange:
    """What users of some machines get instead of what they got.

    Attributes:
        platforms: the subdirs on which this changes.
        machine: `no GPU`, or the CUDA versions of drivers, as `driver 12.9 and newer`.
        before, after: `CPU`, `CUDA 12.9` or `nothing`; `A or B (whichever is newer)` where only time stamps decide.
    """

    name: str
    platforms: tuple[str, ...]
    machine: str
    before: str
    after: str


def changed_choices(before: Sequence[Packages], after: Sequence[Packages]) -> tuple[ChoiceChange, ...]:
    """The machines whose users get a build for another CUDA version, or for CPU, than before; empty without CUDA.

    Args:
        before: the packages of each job.
    """
    old, new = _channel(before), _channel(after)
    if not any(offer.cuda for offer in (*old.offers, *new.offers)):
        return ()
    drivers = _drivers((*old.offers, *new.offers))
    names = {record.name for record in old.records} & {record.name for record in new.records} - {_CUDA, _TOOLKIT}
    got = wait_for(_labels(old, drivers))
    gets = wait_for(_labels(_after(old, new), drivers))
    return tuple(_grouped(got, gets, names, drivers))


#: What a solver takes by platform, name and driver.
Labels = Mapping[tuple[str, str, str | None], str]
#: By the URL of a package: by names of packages of other feedstocks, the `version` or `build` that it requires.
Elsewhere = Mapping[str, Mapping[tuple[str, str], frozenset[str]]]


@dataclass(frozen=True)
class _Channel:
    """The packages that users can choose from; `new` are the URLs of the new state's, if old ones are beside them."""

    offers: tuple[Offer, ...]
    elsewhere: Elsewhere
    new: frozenset[str] = frozenset()

    @property
    def records(self) -> list[Record]:
        return [offer.package.record for offer in self.offers]


def _after(old: _Channel, new: _Channel) -> _Channel:
    """What users have after a change: packages of the new state, and those of the old one that none of them replaces.

    Of builds that differ in their hash alone, time stamps choose the new one.
    """
    urls = frozenset(record.url for record in new.records)
    built = {(offer.platform, offer.package.record.url) for offer in new.offers}
    replaced = {_rank(offer) for offer in new.offers}
    others = (
        offer
        for offer in old.offers
        if (offer.platform, offer.package.record.url) not in built and _rank(offer) not in replaced
    )
    return _Channel((*new.offers, *others), {**old.elsewhere, **new.elsewhere}, urls)


def _rank(offer: Offer) -> tuple[object, ...]:
    """What a solver compares of two builds, and what they are for."""
    record = offer.package.record
    return (record.name, offer.platform, record.version, record.build_number, record.track_features, offer.cuda)


async def _labels(channel: _Channel, drivers: Sequence[str]) -> Labels:
    solver = ManySolves(dict.fromkeys({offer.platform.subdir for offer in channel.offers}, ()), at_once=2)
    outputs = frozenset(record.name for record in channel.records)
    try:
        picks = await picks_of(channel.offers, outputs, drivers, solver)
    finally:
        solver.close()
    return {(pick.platform, pick.name, pick.driver): _label(pick, channel) for pick in picks}


def _label(pick: Pick, channel: _Channel) -> str:
    """A pick in words. Between an old and a new build with the same number the time stamps choose the new one."""
    by_build: dict[str | None, list[Offer]] = {}
    for offer in channel.offers:
        record = offer.package.record
        if (offer.platform.subdir, record.name) == (pick.platform, pick.name):
            by_build.setdefault(f"{record.version} {record.build}", []).append(offer)
    found = [by_build[build] for build in (pick.build, *pick.by_time) if build is not None]
    old = ""
    if channel.new and found:
        new = [offers for offers in found if any(offer.package.record.url in channel.new for offer in offers)]
        found, old = (new, "") if new else (found, " (a build from before)")
    labels = sorted({_flavours(offers) for offers in found})
    if len(labels) < 2:
        return f"{labels[0]}{old}" if labels else "nothing"
    decided = _decided_elsewhere([offers[0] for offers in found], channel.elsewhere)
    return f"{' or '.join(labels)} ({f'as {decided} prefers' if decided else 'whichever is newer'}){old}"


def _decided_elsewhere(offers: Sequence[Offer], elsewhere: Elsewhere) -> str:
    """The package of another feedstock that two builds require in different builds, or up to different versions.

    A solver prefers the newest packages that builds require to the time when these were built.
    """
    first, *others = (elsewhere.get(offer.package.record.url, {}) for offer in offers)
    return next(
        (
            name
            for other in others
            for name, of in sorted(first)
            if first[name, of] != other.get((name, of), first[name, of])
        ),
        "",
    )


def _flavours(offers: Sequence[Offer]) -> str:
    """What a build is for: one made in several jobs is for all of their CUDA versions."""
    versions = {offer.cuda for offer in offers}
    if len(versions) > 1:
        return "any"
    return next(f"CUDA {version}" if version else "CPU" for version in versions)


def _grouped(got: Labels, gets: Labels, names: set[str], drivers: Sequence[str]) -> Iterator[ChoiceChange]:
    """The changes, with adjacent drivers and equal platforms together."""
    machines: tuple[str | None, ...] = (None, *drivers)
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name, subdir in sorted({(name, subdir) for subdir, name, _ in gets if name in names}):
        rows = [(machine, _of(got, subdir, name, machine), _of(gets, subdir, name, machine)) for machine in machines]
        for (before, after), group in groupby(rows, key=lambda row: row[1:]):
            if before is None or after is None or before == after:
                continue
            for machine in _machines([row[0] for row in group], drivers):
                found.setdefault((name, machine, before, after), []).append(subdir)
    for (name, machine, before, after), subdirs in found.items():
        yield ChoiceChange(name, tuple(subdirs), machine, before, after)


def _of(labels: Labels, subdir: str, name: str, machine: str | None) -> str | None:
    """What a machine gets; where nothing is built for CUDA, all get what those without a GPU do."""
    return labels.get((subdir, name, machine), labels.get((subdir, name, None)))


def _machines(group: Sequence[str | None], drivers: Sequence[str]) -> Iterator[str]:
    """Adjacent machines in words: that without a GPU, and the drivers from the first to the last."""
    if None in group:
        yield _NO_GPU
    versions = [version for version in group if version is not None]
    if not versions:
        return
    first, last = versions[0], _last_before(versions[-1], drivers)
    if first == drivers[0]:
        yield "any driver" if last is None else f"driver up to {last}"
    elif last is None:
        yield f"driver {first} and newer"
    else:
        yield f"driver {first}" if first == last else f"driver {first} to {last}"


def _last_before(version: str, drivers: Sequence[str]) -> str | None:
    """The newest CUDA version that NVIDIA released before the next one that makes a difference; None if none does."""
    place = drivers.index(version)
    if place + 1 == len(drivers):
        return None
    following = _pair(drivers[place + 1])
    between = [toolkit for toolkit in load_cuda().toolkits if _pair(version) <= _pair(toolkit) < following]
    return max(between, key=_pair, default=version)


def _drivers(offers: Sequence[Offer]) -> list[str]:
    """CUDA versions of drivers that may make a difference, and one before all of them."""
    specs = [spec for offer in offers for spec in (*offer.package.record.depends, *offer.package.record.constrains)]
    named = {number for spec in specs if spec.startswith("__cuda ") for number in _NUMBER.findall(spec)}
    built = {offer.cuda for offer in offers if offer.cuda and _NUMBER.fullmatch(offer.cuda)}
    numbers = {_pair(version) for version in (*named, *built) if len(version) < _LONGEST}
    wanted = sorted(numbers | {(major, 0) for major, _ in numbers})
    if len(wanted) > most(_MOST_DRIVERS):
        raise BoundError(f"the requirements name more than {_MOST_DRIVERS} CUDA versions of drivers")
    older = [pair for version in load_cuda().toolkits if (pair := _pair(version)) < wanted[0]]
    return [f"{major}.{minor}" for major, minor in (*([max(older)] if older else []), *wanted)]


def _pair(version: str) -> tuple[int, int]:
    """The first two numbers of a version."""
    major, minor = f"{version}.0".split(".")[:2]
    return int(major), int(minor)


def _channel(jobs: Sequence[Packages]) -> _Channel:
    """The packages of a state, and `cuda-version` and `cudatoolkit` for each CUDA version, without any others."""
    names = {package.name.lower() for job in jobs for package in job} | {_CUDA, _TOOLKIT}
    offers: list[Offer] = []
    elsewhere: dict[str, Mapping[tuple[str, str], frozenset[str]]] = {}
    for job in jobs:
        for package in job:
            promised = _promised(package, job, names)
            offers.append(Offer(package.platform, cuda_version(package.output.variant), promised))
            elsewhere[promised.record.url] = _required_elsewhere(package, names)
    versions = sorted({(offer.platform, offer.cuda) for offer in offers if offer.cuda})
    kinds = ((_CUDA, ""), (_TOOLKIT, ""), (_TOOLKIT, ".99"))  # of `11.2` and of `>=11.2.2`
    stubs = (Offer(at, cuda, _toolkit(at, cuda, name, patch)) for at, cuda in versions for name, patch in kinds)
    return _Channel((*offers, *stubs), elsewhere)


def _required_elsewhere(package: Package, names: set[str]) -> Mapping[tuple[str, str], frozenset[str]]:
    """The builds of other packages, which are not in the small channel, that a package requires, and its upper bounds.

    A constraint counts where the package links what it names, so that a run export requires it.
    """
    found: dict[tuple[str, str], set[str]] = {}
    linked = {name_in(spec).lower() for spec in (*package.run, *(package.host or ()))}
    for spec in (*package.run, *(spec for spec in package.constrains if name_in(spec).lower() in linked)):
        words = spec.split() if isinstance(spec, str) else []
        if not words or words[0] in names or words[0].startswith(("__", "python")):
            continue
        name, version, build, *_ = *words, "", ""
        if not build and (match := _BUILD.fullmatch(version)):
            version, build = version.removesuffix(f"={match[1]}"), match[1]
        if build:
            found.setdefault((name, "build"), set()).add(build)
        bounds = {part for part in version.split(",") if not part.startswith((">", "!"))}
        found.setdefault((name, "version"), set()).update(bounds - {"*", "=*", ""})
    return {key: frozenset(values) for key, values in found.items()}


def _toolkit(platform: Platform, cuda: str, name: str, patch: str) -> Promised:
    """A version of CUDA as conda-forge has it: installable with a driver of its major version, or without one."""
    major = parse_version(cuda).major
    nothing = frozenset[str]()
    used = UsedVariables(nothing, nothing, nothing)
    output = RenderedOutput(name, f"{cuda}{patch}", 0, "0", "generic", {}, {}, VariantSpace(()), used)
    return promise(Package(platform, output), (), (f"__cuda >={major if major >= 11 else cuda}",), RunExports())


def _promised(package: Package, job: Packages, names: set[str]) -> Promised:
    """A package with requirements on the others of its job, the machine and `cuda-version` alone."""
    cuda = cuda_version(package.output.variant)
    depends = list(_resolved(package.run, package, job, names))
    required = (*package.build, *(package.host or ()))
    is_compiled = any(isinstance(spec, str) and spec.startswith(_COMPILERS) for spec in required)
    if cuda and is_compiled and _CUDA not in package.ignored:
        depends.append(f"{_CUDA} >={cuda},<{parse_version(cuda).major + 1}")
    return promise(package, depends, tuple(_resolved(package.constrains, package, job, names)), RunExports())


def _resolved(specs: Sequence[Requirement], package: Package, job: Packages, names: set[str]) -> Iterator[str]:
    for spec in specs:
        name = name_in(spec).lower()
        if isinstance(spec, str):
            if name.startswith("__") or name in names:
                yield spec
        elif name == _CUDA:
            cuda = cuda_version(package.output.variant)
            yield spec.applied(cuda, "0") if cuda else name
        elif name in names:
            sibling = _sibling(name, package.output, job)
            yield spec.applied(sibling.version, sibling.build_string) if sibling else name


def _sibling(name: str, output: RenderedOutput, job: Packages) -> RenderedOutput | None:
    """The build of a sibling that is made together with an output: that of the most equal values."""

    def agreement(other: RenderedOutput) -> int:
        return sum(output.variant.get(key) == other.variant.get(key) for key in output.used.own | other.used.own)

    return max((each.output for each in job if each.name.lower() == name), key=agreement, default=None)
