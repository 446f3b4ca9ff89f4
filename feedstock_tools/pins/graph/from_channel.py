"""The pin graph of a channel's repodata: which version of a package goes with which of another.

A version of a package is a release, each of its builds a way: its direct and indirect dependencies must be
present, its constraints must hold for present packages, and so must its run exports, since packages built with it need
them. `cudatoolkit` and `cuda-version` are both the release of CUDA, by major and minor version; Python too is known by
its minor version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.pins.graph.channel_builds import VIRTUAL_KINDS, Builds, packages_between
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way

#: Packages that are a kind of their own in the graph, by name.
CHANNEL_KINDS = MappingProxyType(
    {
        "cudatoolkit": "cuda",
        "cuda-version": "cuda",
        "cudnn": "cudnn",
        "nccl": "nccl",
        "cutensor": "cutensor",
        "python": "python",
    }
)


def graph_of_channel(
    records: Sequence[Record],
    origin: str,
    *,
    packages: Iterable[str] = (),
    virtual: Mapping[str, Iterable[str]] | None = None,
    exports: Mapping[str, RunExports] | None = None,
) -> PinGraph:
    """The graph of a channel's packages of CUDA, its libraries and Python, and of those named in `packages`.

    Args:
        records: the channel's packages.
        origin: the channel's name, for explanations.
        virtual: versions of the kinds `__cuda` and `glibc` that a machine may have; versions named by packages are
            added in any case.
        exports: the run exports of builds by URL, as far as known.
    """
    kinds = {**CHANNEL_KINDS, **{name: name for name in packages if name not in CHANNEL_KINDS}}
    between = packages_between(kinds, records)
    relevant = [record for record in records if record.name in kinds or record.name in between]
    of_kinds = [record for record in relevant if record.name in kinds]
    scales = _scales(relevant, virtual or {})
    builds = Builds(kinds, between, relevant, scales, exports or {})
    about = kinds.keys() | between | VIRTUAL_KINDS.keys()
    ways: dict[Release, dict[Way, None]] = {}
    specs: dict[Release, dict[str, None]] = {}
    for record in of_kinds:
        for way in builds.ways(record):
            release = builds.release(record)
            ways.setdefault(release, {})[way] = None
            texts = specs.setdefault(release, {})
            texts.update((spec, None) for spec in (*record.depends, *record.constrains) if spec.split(" ")[0] in about)
    bounds = tuple(
        Bound(release, tuple(ways_of_release), _reason(origin, specs[release]))
        for release, ways_of_release in ways.items()
    )
    subdirs = {record.subdir for record in of_kinds if record.subdir != "noarch"}
    releases = {*ways, *(Release("platform", subdir) for subdir in subdirs)}
    releases |= {Release(kind, version) for kind, versions in scales.items() for version in versions}
    origins = dict.fromkeys((release.kind for release in ways), origin)
    return PinGraph(frozenset(releases), bounds, MappingProxyType(origins), origin)


def _scales(records: Iterable[Record], virtual: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """The given versions of `__cuda` and glibc, and those named by packages."""
    versions_of = {kind: set(virtual.get(kind, ())) for kind in VIRTUAL_KINDS.values()}
    for record in records:
        for spec in (*record.depends, *record.constrains):
            name, _, rest = spec.partition(" ")
            if name in VIRTUAL_KINDS:
                versions_of[VIRTUAL_KINDS[name]].update(_named_versions(rest))
    return {kind: frozenset(versions) for kind, versions in versions_of.items()}


def _named_versions(spec: str) -> Iterator[str]:
    """The versions in `>=11.2,<12|10.2.*`, without the upper bounds."""
    for part in spec.replace("|", ",").split(" ")[0].split(","):
        text = part.strip("=>!~").removesuffix(".*")
        if text and not part.startswith("<") and text[0].isdigit() and "a" not in text:
            yield text


def _reason(origin: str, specs: Iterable[str]) -> str:
    texts = list(specs)
    if not texts:
        return f"{origin} has it"
    more = f" and {len(texts) - 6} more" if len(texts) > 6 else ""
    return f"its builds in {origin} require {', '.join(texts[:6])}{more}"
