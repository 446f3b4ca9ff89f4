"""Which CUDA, cuDNN, Python and platforms the wheels of frameworks go with, as bounds of the pin graph."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.facts.frameworks import Framework, WheelRelease, load_frameworks, load_wheels
from feedstock_tools.pins.graph.model import Bound, Release, Way
from feedstock_tools.versions import parse_version

#: The frameworks that demands may name, and their wheels: some have others for each major version of CUDA.
FRAMEWORKS: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("tensorflow",),
    "pytorch": ("torch",),
    "torch": ("torch",),
    "jax": ("jax-cuda12", "jax-cuda13"),
    "cupy": ("cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
}
_PLATFORMS = frozenset({"linux-64", "linux-aarch64", "linux-ppc64le", "win-64"})


def bounds_of_wheels(name: str, facts: CudaFacts, cudas: Sequence[str], pythons: Sequence[str]) -> Iterator[Bound]:
    """The CUDA, cuDNN, Python and platforms that the wheels of a framework are for, by minor version."""
    by_version: dict[str, dict[str, WheelRelease]] = {}
    for key in FRAMEWORKS[name]:
        for wheels in load_wheels().get(key, ()):
            by_version.setdefault(wheels.version, {})[key] = wheels
    cudnns = [release.version for release in facts.libraries["cudnn"].releases] if "cudnn" in facts.libraries else []
    for version, builds in by_version.items():
        release = Release(name, version)
        source = f"the metadata of {' and '.join(f'{key} {version}' for key in builds)}"
        yield _of_platforms(release, builds.values(), source)
        if pythons:
            supported = sorted({python for wheels in builds.values() for python in wheels.python}, key=parse_version)
            way = Way({"python": frozenset(pythons) & frozenset(supported)}, source=source)
            yield Bound(release, (way,), f"its wheels are for Python {supported[0]} to {supported[-1]}")
        yield _brought_cuda(release, builds, cudas, source)
        yield from _needed_cudnn(release, builds.values(), cudnns, source)


def _of_platforms(release: Release, builds: Collection[WheelRelease], source: str) -> Bound:
    """The platforms of the wheels, but for those where a framework has none for a GPU."""
    named = list(dict.fromkeys(platform for wheels in builds for platform in wheels.platforms))
    framework = load_frameworks().frameworks["pytorch" if release.kind == "torch" else release.kind]
    reasons = {
        platform: none.reason
        for none in framework.unavailable
        for platform in none.platforms
        if none.accelerator == "gpu" and not _has_gpu_wheels(framework, platform, release.version)
    }
    fit = [platform for platform in named if platform not in reasons]
    sentence = f"its wheels are for {_and(fit)}" if fit else "it has no wheels"
    left_out = [
        f"for {platform} they have no GPU code: {reasons[platform]}" for platform in named if platform in reasons
    ]
    reason = "; ".join([sentence, *left_out])
    return Bound(release, (Way({"platform": frozenset(fit) & _PLATFORMS}, source=source),), reason)


def _has_gpu_wheels(framework: Framework, platform: str, version: str) -> bool:
    """Whether pip installs a version of a framework with GPU code on a platform."""
    return any(
        way.accelerator == "gpu" and way.pip and platform in way.platforms
        for way in framework.ways
        if way.versions is None or admits(way.versions, version)
    )


def _brought_cuda(release: Release, builds: Mapping[str, WheelRelease], cudas: Sequence[str], source: str) -> Bound:
    """The CUDA that the wheels bring along, that their names say, or that their makers tested them with."""
    ways, words = [], []
    for key, wheels in builds.items():
        if wheels.tested is not None:
            cuda, cudnn = wheels.tested
            way = Way({"cuda": frozenset({cuda})}, frozenset({"cuda"}), "TensorFlow's tested build configurations")
            reason = f"it was tested with CUDA {cuda} and cuDNN {cudnn}; its wheels bring none along"
            return Bound(release, (way,), reason)
        major = re.search(r"cuda(\d+)", key)
        if wheels.cuda_spec is None and major is None:
            none = Way({"cuda": frozenset()}, source=source)
            return Bound(release, (none,), "its metadata names no CUDA", unknown=True)
        spec = ",".join(filter(None, (wheels.cuda_spec, major and f"{major[1]}.*")))
        brought = frozenset(cuda for cuda in cudas if admits(spec, cuda))
        ways.append(Way({"cuda": brought}, frozenset({"cuda"}), source))
        cudnn = f" and cuDNN {wheels.cudnn.removeprefix('==')}" if wheels.cudnn else ""
        named = f"{key} for CUDA {major[1]}" if major else f"its wheels bring CUDA {spec.removesuffix('.*')}"
        words.append(f"{named}{cudnn}")
    return Bound(
        release, tuple(ways), f"its wheels are {_and(words)}" if len(FRAMEWORKS[release.kind]) > 1 else words[0]
    )


def _needed_cudnn(
    release: Release, builds: Collection[WheelRelease], cudnns: Sequence[str], source: str
) -> Iterator[Bound]:
    """The cuDNN that a framework runs with: of the major version that it was built with, and no older minor one.

    (NVIDIA cuDNN, API compatibility: an application runs with the same major and the same or a later minor version.)
    """
    allowed: set[str] = set()
    built: list[str] = []
    for wheels in builds:
        least = re.search(r"(?:==|>=|^)(\d+(?:\.\d+)+)", wheels.tested[1] if wheels.tested else wheels.cudnn or "")
        if least is None:
            return
        minor = parse_version(".".join(least[1].split(".")[:2]))
        built.append(least[1])
        allowed |= {
            version
            for version in cudnns
            if parse_version(version).major == minor.major and parse_version(version) >= minor
        }
    if cudnns and built:
        way = Way({"cudnn": frozenset(allowed)}, source=source)
        reason = f"it was built with cuDNN {_and(dict.fromkeys(built))}, and needs that minor version or a later one"
        yield Bound(release, (way,), reason)


def _and(words: Collection[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
