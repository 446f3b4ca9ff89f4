"""The pin graph of a channel's repodata: which version of a package goes with which of another.

A version of a package is a release, each of its builds a way: its direct and indirect dependencies must be
present, its constraints must hold for present packages, and so must its run exports, since packages built with it need
them. `cudatoolkit` and `cuda-version` are both the release of CUDA, by major and minor version; Python too is known by
its minor version.

Indirect dependencies of a build count as its own: a `tensorflow-gpu` goes with the CUDA of the `tensorflow` whose build
it names. Each chain of dependencies is followed separately: a conflict between two of them over builds of one package
is not noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType

from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.errors import InputError
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.versions import minor_of

#: Virtual packages that are kinds of the graph.
VIRTUAL_KINDS = MappingProxyType({"__cuda": "__cuda", "__glibc": "glibc"})
_MINOR = frozenset({"cuda", "python"})
#: More different ways than this for the dependencies of one build are not distinguished.
_MOST_WAYS = 64


@dataclass(frozen=True, slots=True)
class _Dependency:
    name: str
    version: str
    build: str


class Builds:
    """The builds of packages that have a kind in the graph, and of those between them.

    Args:
        kinds: the kind of each package that has one, by name.
        between: the names of packages without a kind that count because of their dependencies.
        records: the builds of all of them.
        scales: the versions of virtual packages, by kind.
        exports: run exports by the URL of a build.
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        between: frozenset[str],
        records: Iterable[Record],
        scales: Mapping[str, frozenset[str]],
        exports: Mapping[str, RunExports],
    ) -> None:
        self._kinds = kinds
        self._between = between
        self._scales = scales
        self._exports = exports
        self._by_name: dict[str, list[Record]] = {}
        for record in records:
            self._by_name.setdefault(record.name, []).append(record)
        self._through: dict[str, tuple[Way, ...]] = {}
        self._of_build: dict[str, tuple[Way, ...]] = {}

    def release(self, record: Record) -> Release:
        return Release(kind := self._kinds[record.name], _version(kind, record.version))

    def ways(self, record: Record) -> tuple[Way, ...]:
        """How a build goes with others; none if its metadata cannot be read or nothing satisfies it."""
        return self._ways(record, frozenset({record.name}))

    def _ways(self, record: Record, path: frozenset[str]) -> tuple[Way, ...]:
        """`path` has the names of the packages that led here, to detect cycles of dependencies."""
        if record.url not in self._of_build:
            try:
                ways: tuple[Way, ...] = (self._own_way(record),)
                for spec in dict.fromkeys(record.depends):
                    name = _read(spec).name
                    if name in self._between and name not in path:
                        ways = _joined(ways, self._ways_through(spec, path | {name}))
            except InputError:
                ways = ()
            self._of_build[record.url] = ways
        return self._of_build[record.url]

    def _own_way(self, record: Record) -> Way:
        """The direct requirements of a build; `InputError` if they cannot be read."""
        own = self._kinds.get(record.name)
        allowed: dict[str, frozenset[str]] = {}
        needed = set()
        if record.subdir != "noarch":
            allowed["platform"] = frozenset({record.subdir})
        admits("*", record.version)
        exported = self._exports.get(record.url, RunExports())
        demanded = (*record.depends, *exported.weak, *exported.strong)
        limited = (*record.constrains, *exported.weak_constrains, *exported.strong_constrains)
        for spec, is_needed in {**dict.fromkeys(limited, False), **dict.fromkeys(demanded, True)}.items():
            wanted = _read(spec)
            kind = self._kinds.get(wanted.name) or VIRTUAL_KINDS.get(wanted.name)
            if kind is None or kind == own:
                continue
            versions = self._admitted_versions(kind, wanted)
            allowed[kind] = allowed[kind] & versions if kind in allowed else versions
            if is_needed:
                needed.add(kind)
        return Way(MappingProxyType(allowed), frozenset(needed), record.url)

    def _ways_through(self, spec: str, path: frozenset[str]) -> tuple[Way, ...]:
        """The different ways of the builds that a dependency allows."""
        if spec not in self._through:
            wanted = _read(spec)
            builds = [record for record in self._by_name.get(wanted.name, ()) if _admitted(wanted, record)]
            self._through[spec] = _loosest(way for record in builds for way in self._ways(record, path))
        return self._through[spec]

    def _admitted_versions(self, kind: str, wanted: _Dependency) -> frozenset[str]:
        if wanted.name in VIRTUAL_KINDS:
            return frozenset(version for version in self._scales[kind] if admits(wanted.version, version))
        return frozenset(
            _version(kind, record.version) for record in self._by_name.get(wanted.name, ()) if _admitted(wanted, record)
        )


def _version(kind: str, version: str) -> str:
    """The version of a release: `11.3` for a cudatoolkit 11.3.1."""
    return minor_of(version) if kind in _MINOR else version


def packages_between(kinds: Mapping[str, str], records: Iterable[Record]) -> frozenset[str]:
    """The packages without a kind that depend, directly or indirectly, on CUDA or one of its libraries."""
    dependents: dict[str, set[str]] = {}
    for record in records:
        for spec in record.depends:
            dependents.setdefault(spec.split(" ", 1)[0].lower(), set()).add(record.name)
    dependent: set[str] = set()
    waiting = [name for name, kind in kinds.items() if kind != "python"]
    while waiting:
        new = dependents.get(waiting.pop(), set()) - dependent
        dependent |= new
        waiting += new
    return frozenset(dependent - kinds.keys())


def _joined(ways: Sequence[Way], others: Sequence[Way]) -> tuple[Way, ...]:
    if len(others) > _MOST_WAYS:
        return tuple(ways)
    joined = []
    for way in ways:
        for other in others:
            allowed = dict(way.allowed)
            for kind, versions in other.allowed.items():
                allowed[kind] = allowed[kind] & versions if kind in allowed else versions
            needed = way.needed | other.needed
            if all(versions or (kind not in needed and kind != "platform") for kind, versions in allowed.items()):
                joined.append(Way(MappingProxyType(allowed), needed, way.source))
    return _loosest(joined)


def _loosest(ways: Iterable[Way]) -> tuple[Way, ...]:
    """The alternatives that are not covered by another one."""
    different = {(frozenset(way.allowed.items()), way.needed): way for way in ways}
    kept: list[Way] = []
    for way in sorted(different.values(), key=lambda way: -sum(map(len, way.allowed.values()))):
        if not any(_covers(other, way) for other in kept):
            kept = [other for other in kept if not _covers(way, other)]
            kept.append(way)
    return tuple(kept)


def _covers(way: Way, other: Way) -> bool:
    return way.needed <= other.needed and all(
        kind in other.allowed and other.allowed[kind] <= versions for kind, versions in way.allowed.items()
    )


def _admitted(wanted: _Dependency, record: Record) -> bool:
    return admits(wanted.version, record.version) and fnmatchcase(record.build, wanted.build)


@lru_cache(maxsize=65536)
def _read(text: str) -> _Dependency:
    spec = read_spec(text)
    return _Dependency(spec.name, spec.version or "*", spec.build or "*")


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
