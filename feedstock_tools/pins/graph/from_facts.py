"""The pin graph of the facts: toolkits, compilers, architectures, drivers, and conda-forge's libraries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts.cuda import MSVC, CudaFacts, Drivers, GpuCode, Library, Toolkit
from feedstock_tools.facts.frameworks import WheelRelease, load_wheels
from feedstock_tools.facts.gpus import Gpu, find_gpu, load_gpus
from feedstock_tools.gpu_code.architecture import parse_architectures, service_of
from feedstock_tools.pins.graph.kinds import FRAMEWORKS, WHEELS, kind_named, msvc_of, msvc_words
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.versions import parse_version
from feedstock_tools.wording import listed

_LINUX = frozenset({"linux-64", "linux-aarch64", "linux-ppc64le"})
_WINDOWS = frozenset({"win-64"})
_PLATFORMS = _LINUX | _WINDOWS
#: Kinds whose bounds are ranges, so that a version which no fact names (a machine's driver) can be in the graph too.
_SCALES = ("gcc", "clang", "visual-studio", "driver", "glibc")

#: Driver branches that report a CUDA version of which no toolkit was released (`nvidia-smi` of R565 and R566: 12.7).
_WITHOUT_TOOLKIT = {565: "12.7", 566: "12.7"}

Scales = Mapping[str, frozenset[str]]


def graph_of_facts(
    facts: CudaFacts,
    *,
    cuda_versions: Iterable[str] | None = None,
    also: Mapping[str, Iterable[str]] | None = None,
    pythons: Sequence[str] = (),
) -> PinGraph:
    """The graph of `variants/cuda.yaml`; for the same questions about the same facts it is made once.

    Args:
        cuda_versions: the CUDA versions of the graph, possibly with ones that have no facts; default: all known ones.
        also: further versions of gcc, clang, the driver and glibc, for example the driver of a machine; and GPUs.
        pythons: versions of Python; the facts do not restrict them.
    """
    cudas = tuple(facts.toolkits if cuda_versions is None else dict.fromkeys(cuda_versions))
    more = tuple((kind, frozenset(versions)) for kind, versions in sorted((also or {}).items()))
    return _graph_for(facts, cudas, more, tuple(pythons))


@lru_cache(maxsize=8)
def _graph_for(
    facts: CudaFacts, cudas: tuple[str, ...], more: tuple[tuple[str, frozenset[str]], ...], pythons: tuple[str, ...]
) -> PinGraph:
    also = dict(more)
    scales = _scales(facts, also)
    wheels = [name for name in FRAMEWORKS if name in also]
    bounds = [
        *(bound for cuda in cudas for bound in _of_cuda(cuda, facts, scales, compiles=not wheels)),
        *_of_libraries(facts, cudas, scales["sm"]),
        *_of_the_machine(facts, scales, also),
        *(
            bound
            for name in wheels
            for bound in bounds_of_wheels(
                name, facts, cudas, pythons, scales, [each for each in wheels if each != name]
            )
        ),
        *(bound for gpu in _gpus(also) for bound in _of_gpu(gpu, cudas, scales["driver"])),
    ]
    releases = {bound.release for bound in bounds} | {Release("cuda", cuda) for cuda in cudas}
    releases |= {Release("platform", name) for name in _PLATFORMS} | {Release("python", name) for name in pythons}
    releases |= {Release(kind, version) for kind, versions in scales.items() for version in versions}
    origins = {release.kind: "cuda.yaml" for release in releases} | {"python": "packages.yaml"}
    origins |= dict.fromkeys(facts.libraries, "the builds of conda-forge") | dict.fromkeys(wheels, WHEELS)
    return PinGraph(frozenset(releases), tuple(bounds), MappingProxyType(origins))


def needed_cuda(cuda: str) -> str:
    """The CUDA that a driver must run at least for a toolkit's machine code: from CUDA 11 on any of the same major."""
    major = parse_version(cuda).major
    return f"{major}.0" if major >= 11 else cuda


def reported_cuda(facts: CudaFacts, driver: str, *, windows: bool = False) -> str | None:
    """The newest CUDA version that a driver runs, from its branch: that of the last toolkit shipped with it or before.

    A branch has one number for Linux, with which the first drivers for Windows begin too (526.47 of R525), and others
    follow there (527.41). None for a driver from before the first toolkit of the facts.
    """
    branch = parse_version(driver).major
    newest = None
    for version, shipped in _branches(facts, windows):
        if shipped <= branch:
            newest = version
    return _WITHOUT_TOOLKIT.get(branch, newest)


@lru_cache(maxsize=8)
def _branches(facts: CudaFacts, windows: bool) -> tuple[tuple[str, int], ...]:
    branches = []
    for toolkit in facts.toolkits.values():
        drivers = toolkit.driver
        both = ((drivers.linux, drivers.windows) if windows else (drivers.linux,)) if drivers else ()
        shipped = [parse_version(version).major for version in both if version is not None]
        if shipped:
            branches.append((toolkit.version, min(shipped)))
    return tuple(branches)


def _shipped(toolkit: Toolkit) -> tuple[str, ...]:
    drivers = toolkit.driver
    return tuple(version for version in (drivers.linux, drivers.windows) if version) if drivers else ()


def _gpus(also: Mapping[str, Iterable[str]]) -> list[Gpu]:
    return [find_gpu(name, load_gpus()) for name in also.get("gpu", ())]


def _scales(facts: CudaFacts, also: Mapping[str, Iterable[str]]) -> Scales:
    """The versions of kinds that the facts restrict by ranges or sets."""
    toolkits = facts.toolkits.values()
    drivers = (drivers for toolkit in toolkits for drivers in (toolkit.driver, toolkit.least_driver) if drivers)
    first = {version for gpu in _gpus(also) for version in gpu.first_driver.values()}
    rows = [row.values for row in facts.rows if row.cuda is not None and row.platform.os == "linux"]
    scales = {
        "sm": {name for toolkit in toolkits for name in toolkit.architectures},
        "gcc": {row["c_compiler_version"] for row in rows} | {str(t.newest_gcc) for t in toolkits if t.newest_gcc},
        "clang": {str(toolkit.newest_clang) for toolkit in toolkits if toolkit.newest_clang},
        "visual-studio": {str(year) for year in MSVC} | {"17.9"},
        "driver": {version for pair in drivers for version in (pair.linux, pair.windows) if version} | first,
        "__cuda": {*facts.toolkits, *_WITHOUT_TOOLKIT.values()},
        "glibc": {row["c_stdlib_version"] for row in rows},
    }
    return {
        kind: frozenset({*versions, *(also.get(kind, ()) if kind in _SCALES else ())})
        for kind, versions in scales.items()
    }


def _of_cuda(cuda: str, facts: CudaFacts, scales: Scales, *, compiles: bool) -> Iterator[Bound]:
    """The bounds of a toolkit; without those of its nvcc on architectures, and the platforms of conda-forge's packages,
    where wheels have been compiled."""
    release = Release("cuda", cuda)
    toolkit = facts.toolkits.get(cuda)
    if toolkit is None:
        for kind in ("gcc", "clang", "visual-studio", "sm", "driver", "__cuda", "glibc"):
            yield _unknown(release, kind)
        return
    if compiles:
        yield _platform_bound(release, toolkit, _cited(facts, toolkit, "platforms"))
    yield _host_bound(
        release, "gcc", (toolkit.oldest_gcc, toolkit.newest_gcc), scales["gcc"], _cited(facts, toolkit, "newest_gcc")
    )
    if toolkit.newest_conda_forge_gcc is not None:
        newest = toolkit.newest_conda_forge_gcc
        allowed = frozenset(version for version in scales["gcc"] if parse_version(version).major <= newest)
        way = Way({"gcc": allowed}, source=_cited(facts, toolkit, "newest_conda_forge_gcc"))
        elsewhere = f", NVIDIA's own up to {toolkit.newest_gcc}" if (toolkit.newest_gcc or 0) > newest else ""
        yield Bound(release, (way,), f"conda-forge's packages of it accept gcc up to {newest}{elsewhere}")
    yield _host_bound(
        release, "clang", (None, toolkit.newest_clang), scales["clang"], _cited(facts, toolkit, "newest_clang")
    )
    yield _visual_studio_bound(release, toolkit, scales["visual-studio"], _cited(facts, toolkit, "visual_studio"))
    if compiles:
        way = Way({"sm": frozenset(toolkit.architectures)}, source=_cited(facts, toolkit, "architectures"))
        yield Bound(release, (way,), f"its nvcc knows {listed(f'sm_{name}' for name in toolkit.architectures)}")
    yield _driver_bound(release, toolkit, scales["driver"], _cited(facts, toolkit, "least_driver"))
    least = needed_cuda(cuda)
    enough = frozenset(version for version in scales["__cuda"] if parse_version(version) >= parse_version(least))
    way = Way({"__cuda": enough}, source=_cited(facts, toolkit, "least_driver"))
    yield Bound(release, (way,), f"it runs with a driver for CUDA {least} or later")
    yield _glibc_bound(release, facts, scales["glibc"])


def _platform_bound(release: Release, toolkit: Toolkit, source: str) -> Bound:
    if not toolkit.platforms:
        way = Way({"platform": frozenset()}, frozenset({"platform"}))
        return Bound(release, (way,), "no package of it on conda-forge is known", unknown=True)
    way = Way({"platform": frozenset(toolkit.platforms)}, source=source)
    return Bound(release, (way,), f"conda-forge has it for {listed(toolkit.platforms)}")


def _unknown(release: Release, kind: str) -> Bound:
    """Without facts, nothing may be claimed: no release of that kind can be combined with this one."""
    return Bound(release, (Way({kind: frozenset()}),), f"its {kind_named(kind).title} is not known", unknown=True)


def _host_bound(
    release: Release, kind: str, bounds: tuple[int | None, int | None], scale: frozenset[str], source: str
) -> Bound:
    oldest, newest = bounds
    if newest is None:
        return _unknown(release, kind)
    allowed = frozenset(version for version in scale if (oldest or 0) <= parse_version(version).major <= newest)
    span = f"up to {newest}" if oldest is None else f"{oldest} to {newest}"
    return Bound(release, (Way({kind: allowed}, source=source),), f"its nvcc accepts host {kind} {span}")


def _visual_studio_bound(release: Release, toolkit: Toolkit, scale: frozenset[str], source: str) -> Bound:
    if toolkit.visual_studio is None:
        return _unknown(release, "visual-studio")
    allowed = frozenset(version for version in scale if toolkit.takes_msvc(msvc_of(version)))
    return Bound(release, (Way({"visual-studio": allowed}, source=source),), f"its nvcc accepts {msvc_words(toolkit)}")


def _driver_bound(release: Release, toolkit: Toolkit, drivers: frozenset[str], source: str) -> Bound:
    ways, words = [], []
    for system, platforms in (("Linux", _LINUX), ("Windows", _WINDOWS)):
        least = toolkit.least_driver.on(windows=system == "Windows") if toolkit.least_driver else None
        enough = frozenset(v for v in drivers if least is not None and parse_version(v) >= parse_version(least))
        ways.append(Way({"platform": platforms, "driver": enough}, source=source))
        words.append(f"{least} or later on {system}" if least else f"an unknown driver on {system}")
    return Bound(release, tuple(ways), f"it runs with driver {' and '.join(words)}")


def _glibc_bound(release: Release, facts: CudaFacts, scale: frozenset[str]) -> Bound:
    """What conda-forge's pinning had for it; without a row nothing is known."""
    ways, words, subdirs = [], [], set()
    for row in facts.rows:
        least = row.values.get("c_stdlib_version")
        if row.cuda == release.version and row.platform.os == "linux" and least is not None:
            enough = frozenset(version for version in scale if parse_version(version) >= parse_version(least))
            source = f"{facts.pinning_repository}/tree/{row.commit}"
            ways.append(Way({"platform": frozenset({row.platform.subdir}), "glibc": enough}, source=source))
            words.append(f"{least} on {row.platform}")
            subdirs.add(row.platform.subdir)
    ways.append(Way({"platform": _PLATFORMS - subdirs, "glibc": frozenset()}))
    sentence = f"conda-forge builds it for glibc {listed(words)}" if words else "its glibc is unknown"
    return Bound(release, tuple(ways), sentence)


@lru_cache(maxsize=8)
def _of_libraries(facts: CudaFacts, cudas: tuple[str, ...], sms: frozenset[str]) -> tuple[Bound, ...]:
    """The bounds of all libraries, which are most of a graph, and no demand changes them."""
    return tuple(bound for library in facts.libraries.values() for bound in _of_library(library, cudas, sms))


def _of_library(library: Library, cudas: Sequence[str], sms: frozenset[str]) -> Iterator[Bound]:
    """For each version of a library: one way for each of its builds that runs with one of these CUDA versions."""
    builds: dict[str, dict[Way, str]] = {}
    platforms: dict[str, set[str]] = {}
    for release in library.releases:
        for built, subdirs in release.cuda.items():
            spec = _runs_with(library, release.version, built)
            goes_with = frozenset(cuda for cuda in cudas if admits(spec, cuda))
            if goes_with:
                source = f"{library.repository}/tree/{release.commit}"
                way = Way({"cuda": goes_with, "platform": frozenset(subdirs)}, frozenset({"cuda"}), source)
                builds.setdefault(release.version, {})[way] = spec
                platforms.setdefault(release.version, set()).update(subdirs)
    for version, ways in builds.items():
        where = listed(sorted(platforms[version]))
        sentence = f"conda-forge has it for CUDA {listed(dict.fromkeys(ways.values()))}, for {where}"
        yield Bound(Release(library.name, version), tuple(ways), sentence)
        for code in library.gpu_code:
            if admits(code.versions, version):
                yield _gpu_code_bound(Release(library.name, version), code, cudas, sms)


def _gpu_code_bound(release: Release, code: GpuCode, cudas: Sequence[str], sms: frozenset[str]) -> Bound:
    of_these = frozenset(cuda for cuda in cudas if admits(code.cuda, cuda))
    least = int(code.capability.replace(".", ""))
    enough = frozenset(name for name in sms if int(name.rstrip("af")) >= least)
    ways = (
        Way({"cuda": of_these, "sm": enough}, source=code.source),
        Way({"cuda": frozenset(cudas) - of_these}, source=code.source),
    )
    return Bound(release, ways, f"its builds for CUDA {code.cuda} have code for GPUs from {code.capability} on")


def _runs_with(library: Library, version: str, built: str) -> str:
    for bound in library.goes_with:
        if admits(bound.built, built) and admits(bound.versions, version):
            return bound.cuda.replace("{built}", built)
    return f"{built}.*"


def _of_the_machine(facts: CudaFacts, scales: Scales, also: Mapping[str, Iterable[str]]) -> Iterator[Bound]:
    """Compilers and glibc belong to systems, and a driver says which CUDA it runs.

    A driver that only the facts of one system name is a driver for that system, unless a demand names it.
    """
    for kind, platforms in (("gcc", _LINUX), ("glibc", _LINUX), ("visual-studio", _WINDOWS)):
        for version in sorted(scales[kind]):
            way = Way({"platform": platforms}, source="conda-forge's pinning")
            yield Bound(Release(kind, version), (way,), f"it is for {'Windows' if platforms == _WINDOWS else 'Linux'}")
    newest = max(parse_version(shipped).major for toolkit in facts.toolkits.values() for shipped in _shipped(toolkit))
    of_one = _drivers_of_one_system(facts, also)
    for driver in sorted(scales["driver"]):
        ways, words = [], []
        for system, platforms in (("Linux", _LINUX), ("Windows", _WINDOWS)):
            if of_one.get(driver, system) != system:
                continue
            cuda = reported_cuda(facts, driver, windows=system == "Windows")
            allowed = {"platform": platforms, "__cuda": frozenset({cuda} if cuda else ())}
            ways.append(Way(allowed, source="release notes"))
            words.append(f"up to {cuda} on {system}" if cuda else f"no known version on {system}")
        runs = f"it runs CUDA {' and '.join(words)}"
        if parse_version(driver).major > newest:
            runs = f"it is newer than every driver in the facts (up to {newest}); as far as they go, {runs}"
        yield Bound(Release("driver", driver), tuple(ways), runs)


def _drivers_of_one_system(facts: CudaFacts, also: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The drivers that the facts name for Linux or for Windows alone, but for those in `also`."""
    pairs = [
        *(pair for toolkit in facts.toolkits.values() for pair in (toolkit.driver, toolkit.least_driver) if pair),
        *(Drivers(gpu.first_driver.get("linux"), gpu.first_driver.get("windows")) for gpu in _gpus(also)),
    ]
    linux, windows = {pair.linux for pair in pairs}, {pair.windows for pair in pairs}
    named = {None, *also.get("driver", ())}
    return {
        **{driver: "Linux" for driver in linux - windows - named if driver},
        **{driver: "Windows" for driver in windows - linux - named if driver},
    }


def with_gpus(graph: PinGraph, gpus: Iterable[Gpu]) -> PinGraph:
    """A graph with GPUs as further releases."""
    cudas, drivers = graph.versions.get("cuda", ()), graph.versions.get("driver", ())
    bounds = tuple(bound for gpu in gpus for bound in _of_gpu(gpu, cudas, drivers))
    releases = graph.releases | {bound.release for bound in bounds}
    return replace(graph, releases=releases, bounds=(*graph.bounds, *bounds))


def in_wsl(graph: PinGraph) -> PinGraph:
    """A graph for WSL 2: packages of linux-64 with the driver of Windows (NVIDIA, CUDA on WSL User Guide)."""
    return replace(graph, bounds=tuple(map(_driven_by_windows, graph.bounds)))


def _driven_by_windows(bound: Bound) -> Bound:
    """A bound on drivers with what it says of Windows for linux-64; any other as it is."""
    if not bound.restricts("platform") or (bound.release.kind != "driver" and not bound.restricts("driver")):
        return bound
    ways = []
    for way in bound.ways:
        platforms = way.allowed.get("platform", _PLATFORMS)
        there = platforms - {"linux-64"} | ({"linux-64"} if platforms & _WINDOWS else frozenset())
        ways.append(replace(way, allowed={**way.allowed, "platform": there}))
    return replace(bound, ways=tuple(ways))


def _of_gpu(gpu: Gpu, cudas: Sequence[str], drivers: Iterable[str]) -> Iterator[Bound]:
    release = Release("gpu", gpu.name)
    number = gpu.architecture.removeprefix("sm_")
    way = Way({"sm": frozenset({number})}, frozenset({"sm"}), load_gpus().sources[gpu.sources[0]])
    yield Bound(release, (way,), f"its compute capability is {gpu.capability}, nvcc's {gpu.architecture}")
    if gpu.tegra:
        on = Way({"platform": frozenset({"linux-aarch64"})}, source="Jetson Linux")
        yield Bound(release, (on,), "it is a Jetson module: linux-aarch64, with arm-variant tegra until CUDA 12.9")
        fit = frozenset(cuda for cuda in cudas if gpu.jetson_has(cuda))
        yield Bound(release, (Way({"cuda": fit}, source="Jetson Linux"),), f"its system has {gpu.jetson_words}")
        return
    if gpu.grace:
        on = Way({"platform": frozenset({"linux-aarch64"})}, source="NVIDIA's names of its boards")
        yield Bound(release, (on,), "it is on a board with an ARM processor of NVIDIA's: linux-aarch64")
    yield from _drivers_of_gpu(release, gpu, drivers)


def _drivers_of_gpu(release: Release, gpu: Gpu, drivers: Iterable[str]) -> Iterator[Bound]:
    """The drivers that know a GPU, and where the facts do not say."""
    ways, words = [], []
    source = "the lists of GPUs in NVIDIA's drivers"
    for system, platforms in (("Linux", _LINUX), ("Windows", _WINDOWS)):
        windows = system == "Windows"
        may = frozenset(driver for driver in drivers if gpu.drives(driver, windows=windows) is not False)
        # Without a platform a driver of either system would do.
        ways.append(Way({"platform": platforms, "driver": may}, frozenset({"platform"}), source))
        if least := gpu.least_driver(windows=windows):
            words.append(f"{least} or later on {system}")
    end = f", and the last branch for it is {gpu.last_branch}" if gpu.last_branch else ""
    yield Bound(release, tuple(ways), f"its driver must be {' and '.join(words)}{end}")
    doubtful, doubts = [], []
    for system, platforms in (("Linux", _LINUX), ("Windows", _WINDOWS)):
        windows = system == "Windows"
        sure = frozenset(driver for driver in drivers if gpu.drives(driver, windows=windows))
        certain = gpu.drivers(windows=windows).least == gpu.drivers(windows=windows).sure
        allowed = {"platform": platforms} if certain else {"platform": platforms, "driver": sure}
        doubtful.append(Way(allowed, frozenset({"platform"}), "" if certain else source))
        if not certain and gpu.least_driver(windows=windows) is None:
            branch = parse_version(gpu.first_driver["linux"]).major
            doubts.append(f"its first driver on Windows is not known; later branches than {branch} have it")
        elif not certain:
            doubts.append(f"on {system} {gpu.chip_words(windows=windows)}")
    if doubts:
        yield Bound(release, tuple(doubtful[::-1]), "; ".join(doubts), unknown=True)


def _cited(facts: CudaFacts, toolkit: Toolkit, fact: str) -> str:
    sources = (facts.sources[name] for name in toolkit.sources.get(fact, ()) if name in facts.sources)
    return "; ".join(source.url or source.title for source in sources)


def bounds_of_wheels(
    name: str, facts: CudaFacts, cudas: Sequence[str], pythons: Sequence[str], scales: Scales, others: Sequence[str]
) -> Iterator[Bound]:
    """The CUDA, cuDNN, Python, platforms and GPUs that the wheels of a framework are for, by minor version.

    Args:
        others: the other frameworks of the question.
    """
    by_version = _by_version(name)
    beside = {
        other: {version: _cudnn_majors(wheels.values()) for version, wheels in _by_version(other).items()}
        for other in others
    }
    libraries = {
        kind: [release.version for release in facts.libraries[kind].releases]
        for kind in ("cudnn", "nccl")
        if kind in facts.libraries
    }
    for version, builds in by_version.items():
        release = Release(name, version)
        source = f"the wheels of {' and '.join(f'{key} {version}' for key in builds)}"
        yield from _of_platforms(release, builds.values(), source)
        supported = sorted({python for wheels in builds.values() for python in wheels.python}, key=parse_version)
        if pythons and supported:
            way = Way({"python": frozenset(pythons) & frozenset(supported)}, source=source)
            yield Bound(release, (way,), f"its wheels are for Python {supported[0]} to {supported[-1]}")
        yield _cuda_of_wheels(release, builds, cudas, source)
        yield from _code_of_wheels(release, builds, facts, cudas, scales)
        for kind, known in libraries.items():
            yield from _needed_library(release, builds.values(), kind, known, source)
        yield from _same_cudnn(release, _cudnn_majors(builds.values()), beside, source)


def _by_version(name: str) -> Mapping[str, Mapping[str, WheelRelease]]:
    """The wheels of a framework by version, and by their key of the facts."""
    by_version: dict[str, dict[str, WheelRelease]] = {}
    for key in FRAMEWORKS[name]:
        for wheels in load_wheels().get(key, ()):
            by_version.setdefault(wheels.version, {})[key] = wheels
    return by_version


def _of_platforms(release: Release, builds: Collection[WheelRelease], source: str) -> Iterator[Bound]:
    """The platforms whose wheels hold GPU code; where that was not read, nothing is claimed."""
    named = list(dict.fromkeys(platform for wheels in builds for platform in wheels.platforms))
    fit = [platform for platform in named if any(platform in wheels.code for wheels in builds)]
    unread = {platform: why for wheels in builds for platform, why in wheels.unread.items() if platform not in fit}
    without = [platform for platform in named if platform in _PLATFORMS and platform not in (*fit, *unread)]
    if fit:
        sentence = f"its wheels for {listed(fit)} hold GPU code"
    elif unread:
        sentence = f"only its wheels for {listed(list(unread))} may hold GPU code"
    else:
        sentence = "it has no wheels with GPU code on PyPI"
    none = f"those for {listed(without)} {'have' if fit else 'are for the CPU, and have'} no CUDA" if without else ""
    ways = (Way({"platform": frozenset({*fit, *unread})}, source=source),)
    yield Bound(release, ways, "; ".join(filter(None, (sentence, none))))
    if unread:
        reasons = "; ".join(f"of those for {platform} it is not known: {why}" for platform, why in unread.items())
        yield Bound(release, (Way({"platform": frozenset(fit)}, source=source),), reasons, unknown=True)


def _code_of_wheels(
    release: Release, builds: Mapping[str, WheelRelease], facts: CudaFacts, cudas: Sequence[str], scales: Scales
) -> Iterator[Bound]:
    """The GPUs that the code in the wheels runs on: machine code, or PTX that a new enough driver compiles."""
    ways: list[Way] = []
    words: dict[str, dict[str, list[str]]] = {}
    failing: dict[str, str] = {}
    for key, wheels in builds.items():
        source = f"the GPU code in the wheel of {key} {wheels.version}"
        brought = brought_cuda(wheels, cudas)
        for subdir, text in wheels.code.items():
            mixed = frozenset(wheels.mixed.get(subdir, {}))
            services = services_of(text, scales["sm"])
            services = {"native": services["native"], "ptx": services["ptx"] | mixed}
            failing |= {number: why for number, why in wheels.reported.items() if number in services["ptx"]}
            for how in ("native", "ptx"):
                allowed = {"platform": frozenset({subdir}), "sm": services[how]}
                allowed |= {"cuda": brought} if brought else {}
                if how == "ptx" and services[how]:
                    written = ptx_version(facts, wheels, text)
                    allowed["__cuda"] = _compiling(facts, written, scales["__cuda"])
                if services[how]:
                    said = f"the wheel of {key} for {subdir} holds {code_words(text)}"
                    ways.append(Way(allowed, frozenset(allowed.keys() & {"__cuda"}), source, said))
            words.setdefault(code_words(text), {}).setdefault(key, []).append(subdir)
    if failing:
        others = frozenset(scales["sm"]) - failing.keys()
        yield Bound(release, (Way({"sm": others}),), "; ".join(dict.fromkeys(failing.values())), unknown=True)
    if ways:
        unread = {platform: why for wheels in builds.values() for platform, why in wheels.unread.items()}
        if unread:
            why = f"of some of its wheels it is not known: {listed(dict.fromkeys(unread.values()))}"
            yield Bound(release, tuple(ways), why, unknown=True)
            ways.append(Way({"platform": frozenset(unread)}))
        sentences = [
            f"{f'{key} holds' if len(builds) > 1 else 'its wheels hold'} {code} ({listed(subdirs)})"
            for code, where in words.items()
            for key, subdirs in where.items()
        ]
        yield Bound(release, tuple(ways), "; ".join(sentences))


def wheels_for(name: str, version: str, cuda: str | None) -> list[WheelRelease]:
    """The wheels of a framework's release for a CUDA version."""
    found = (wheels for key in FRAMEWORKS[name] for wheels in load_wheels().get(key, ()))
    return [
        wheels
        for wheels in found
        if wheels.version == version and (cuda is None or _cuda_is_unknown(wheels) or brought_cuda(wheels, [cuda]))
    ]


def _cuda_is_unknown(wheels: WheelRelease) -> bool:
    return not (wheels.tested or wheels.cuda_spec or wheels.cuda_of_name)


def services_of(code: str, numbers: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Of some architectures (`86`, `90a`) those that run GPU code natively, by PTX, or not (`native`, `ptx`, `no`)."""
    found: dict[str, set[str]] = {"native": set(), "ptx": set(), "no": set()}
    architectures = parse_architectures(code.split())
    for number in numbers:
        found[service_of(architectures, int(number.rstrip("af"))).how].add(number)
    return {how: frozenset(names) for how, names in found.items()}


def ptx_version(facts: CudaFacts, wheels: WheelRelease, code: str) -> str | None:
    """The CUDA whose PTX a wheel holds: the oldest that it may be built with and that knows all its architectures."""
    numbers = {name.partition("_")[2] for name in code.split()}
    brought = brought_cuda(wheels, tuple(facts.toolkits))
    may = [version for version in facts.toolkits if version in brought]
    return next(
        (version for version in may if numbers <= {*facts.toolkits[version].architectures}), next(iter(may), None)
    )


def _compiling(facts: CudaFacts, written: str | None, reported: Iterable[str]) -> frozenset[str]:
    """The CUDA versions of drivers that compile PTX of a toolkit."""
    return frozenset(
        cuda for cuda in reported if written is None or parse_version(facts.newest_ptx(cuda)) >= parse_version(written)
    )


def code_words(code: str) -> str:
    """Architectures in words: `machine code for sm_70 to sm_90 and no PTX`."""
    names = code.split()
    machine = [name for name in names if name.startswith("sm_")]
    ptx = [name for name in names if not name.startswith("sm_")]
    parts = [f"machine code for {listed(machine)}"] if machine else []
    return f"{' '.join(parts) or 'no machine code'}, {f'PTX for {listed(ptx)}' if ptx else 'no PTX'}"


def brought_cuda(wheels: WheelRelease, cudas: Sequence[str]) -> frozenset[str]:
    """The CUDA versions that a wheel is for: that of its metadata, its own statement, or its name; none if unknown."""
    if wheels.tested is not None:
        return frozenset(cuda for cuda in cudas if f"{cuda}.".startswith(f"{wheels.tested[0]}."))
    spec = ",".join(filter(None, (wheels.cuda_spec, wheels.cuda_of_name)))
    return frozenset(cuda for cuda in cudas if admits(spec, cuda)) if spec else frozenset()


def _cuda_of_wheels(release: Release, builds: Mapping[str, WheelRelease], cudas: Sequence[str], source: str) -> Bound:
    """The CUDA that the wheels contain, that their names say, or that their makers tested them with."""
    ways, words = [], []
    several = len(builds) > 1 or any(wheels.cuda_of_name for wheels in builds.values())
    for key, wheels in builds.items():
        if wheels.tested is not None:
            cuda, cudnn = wheels.tested
            tested = brought_cuda(wheels, cudas)
            way = Way({"cuda": tested}, frozenset({"cuda"}), "the configurations that its makers tested")
            reason = f"it was tested with CUDA {cuda} and cuDNN {cudnn}; its wheels bring none along"
            return Bound(release, (way,), reason)
        brought = brought_cuda(wheels, cudas)
        if not brought and (wheels.code or wheels.unread):
            none = Way({"cuda": frozenset()}, source=source)
            why = next((f"of its wheels it is not known: {why}" for why in wheels.unread.values()), None)
            return Bound(release, (none,), why or "its metadata names no CUDA", unknown=True)
        cudnn = f" and cuDNN {wheels.cudnn.removeprefix('==')}" if wheels.cudnn else ""
        spec = (wheels.cuda_of_name or wheels.cuda_spec or "").removesuffix(".*")
        verb = "bring" if wheels.cuda else "were built with"
        named = f"{key} for CUDA {spec}" if several else f"its wheels {verb} CUDA {spec}"
        if not wheels.code and wheels.unread:
            named += ", whose GPU code is not known"
        elif not wheels.code:
            named = f"{key} without CUDA" if several else "its wheels bring no CUDA"
        words.append(f"{named}{cudnn if wheels.code else ''}")
        said = f"it is {words[-1]}" if several else ""
        ways.append(Way({"cuda": brought}, frozenset({"cuda"}), source, said))
    return Bound(release, tuple(ways), f"it is {' or '.join(words)}" if several else words[0])


def _library_of(wheels: WheelRelease, kind: str) -> str | None:
    """The cuDNN or NCCL that a wheel was built with, or its major version alone; None if it says nothing.

    Wheels that say nothing may bring their own.
    """
    spec = wheels.nccl if kind == "nccl" else wheels.tested[1] if wheels.tested else wheels.cudnn
    least = re.search(r"(?:==|>=|^)(\d+(?:\.\d+)*)", spec or "")
    return least[1] if least else None


def _needed_library(
    release: Release, builds: Collection[WheelRelease], kind: str, known: Sequence[str], source: str
) -> Iterator[Bound]:
    """The cuDNN or NCCL that a framework runs with: of the major version it was built with, and no older minor one.

    (NVIDIA cuDNN, API compatibility: an application runs with the same major and the same or a later minor version.
    NCCL adds functions in minor versions, `ncclCommRegister` in 2.19.)
    """
    built = [version for wheels in builds if (version := _library_of(wheels, kind))]
    if not known or len(built) < len(builds):
        return
    least = [parse_version(".".join(version.split(".")[:2])) for version in built]
    versions = {version: parse_version(version) for version in known}
    allowed = {
        name for name, each in versions.items() if any(each.major == minor.major and each >= minor for minor in least)
    }
    title = kind_named(kind).title
    reason = f"it was built with {title} {listed(dict.fromkeys(built))}, and needs that minor version or a later one"
    yield Bound(release, (Way({kind: frozenset(allowed)}, source=source),), reason)


def _cudnn_majors(builds: Iterable[WheelRelease]) -> frozenset[str]:
    """The major versions of cuDNN that the wheels of a release need; none if they bring their own or say nothing."""
    return frozenset(cudnn.partition(".")[0] for wheels in builds if (cudnn := _library_of(wheels, "cudnn")))


def _same_cudnn(
    release: Release, own: frozenset[str], beside: Mapping[str, Mapping[str, frozenset[str]]], source: str
) -> Iterator[Bound]:
    """The releases of other frameworks that run in one environment with a framework: an environment has one cuDNN."""
    for other, majors in beside.items() if own else ():
        allowed = frozenset(version for version, theirs in majors.items() if not theirs or theirs & own)
        said = f"it needs cuDNN {listed(sorted(own))}, and an environment has one"
        yield Bound(release, (Way({other: allowed}, source=source),), said)
