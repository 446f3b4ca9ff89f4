"""The pin graph that a channel's repodata gives: which version of a package goes with which of another.

A version of a package is a release, each of its builds a way: what it depends on must be there, what it constrains must
fit where it is there. `cudatoolkit` and `cuda-version` are both the release of CUDA, by major and minor version; Python
too is known by its minor version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType

from feedstock_tools.channel.metadata import Record
from feedstock_tools.errors import InputError
from feedstock_tools.pins.kinds import admits
from feedstock_tools.pins.model import Bound, PinGraph, Release, Way

__all__ = ["CHANNEL_KINDS", "graph_of_channel"]

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
_MINOR = frozenset({"cuda", "python"})
_VIRTUAL = frozenset({"__cuda", "__glibc"})
_VIRTUAL_KINDS = MappingProxyType({"__cuda": "__cuda", "__glibc": "glibc"})


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A dependency: the package's name, its version specification and the pattern of its build string."""

    name: str
    version: str
    build: str


def graph_of_channel(
    records: Sequence[Record],
    origin: str,
    *,
    packages: Iterable[str] = (),
    virtual: Mapping[str, Iterable[str]] | None = None,
) -> PinGraph:
    """The graph of a channel's packages of CUDA, its libraries and Python, and of those named in `packages`.

    Args:
        records: what the channel has, of any packages.
        origin: the channel's name, for explanations.
        virtual: versions of the kinds `__cuda` and `glibc` that a machine may have; those which the packages name are
            there in any case.
    """
    kinds = {**CHANNEL_KINDS, **{name: name for name in packages if name not in CHANNEL_KINDS}}
    known = [record for record in records if record.name in kinds]
    scales = _scales(known, virtual or {})
    index = _Index(kinds, known, scales)
    ways: dict[Release, dict[Way, None]] = {}
    specs: dict[Release, dict[str, None]] = {}
    for record in known:
        way = index.way(record)
        if way is not None:
            release = index.release(record)
            ways.setdefault(release, {})[way] = None
            texts = specs.setdefault(release, {})
            texts.update((spec, None) for spec in (*record.depends, *record.constrains) if _is_about(spec, kinds))
    bounds = tuple(Bound(release, tuple(found), _said(origin, specs[release])) for release, found in ways.items())
    subdirs = {record.subdir for record in known if record.subdir != "noarch"}
    releases = {*ways, *(Release("platform", subdir) for subdir in subdirs)}
    releases |= {Release(kind, version) for kind, versions in scales.items() for version in versions}
    origins = dict.fromkeys((release.kind for release in ways), origin)
    return PinGraph(frozenset(releases), bounds, MappingProxyType(origins), origin)


class _Index:
    """The records by name, to look up what a specification lets in."""

    def __init__(
        self, kinds: Mapping[str, str], records: Iterable[Record], scales: Mapping[str, frozenset[str]]
    ) -> None:
        self._kinds = kinds
        self._scales = scales
        self._by_name: dict[str, dict[tuple[str, str], None]] = {}
        for record in records:
            self._by_name.setdefault(record.name, {})[record.version, record.build] = None

    def release(self, record: Record) -> Release:
        return Release(kind := self._kinds[record.name], _version(kind, record.version))

    def way(self, record: Record) -> Way | None:
        """How a build goes with others; None for one whose metadata cannot be read."""
        own = self._kinds[record.name]
        allowed: dict[str, frozenset[str]] = {}
        needed = set()
        if record.subdir != "noarch":
            allowed["platform"] = frozenset({record.subdir})
        try:
            admits("*", record.version)
            for spec, is_needed in [*((s, True) for s in record.depends), *((s, False) for s in record.constrains)]:
                wanted = _read(spec)
                kind = self._kinds.get(wanted.name) or _VIRTUAL_KINDS.get(wanted.name)
                if kind is None or kind == own:
                    continue
                versions = self._let_in(kind, wanted)
                allowed[kind] = allowed[kind] & versions if kind in allowed else versions
                if is_needed:
                    needed.add(kind)
        except InputError:
            return None
        return Way(MappingProxyType(allowed), frozenset(needed), record.url)

    def _let_in(self, kind: str, wanted: _Wanted) -> frozenset[str]:
        if wanted.name in _VIRTUAL:
            return frozenset(version for version in self._scales[kind] if admits(wanted.version, version))
        return frozenset(
            _version(kind, version)
            for version, build in self._by_name.get(wanted.name, ())
            if admits(wanted.version, version) and fnmatchcase(build, wanted.build)
        )


def _version(kind: str, version: str) -> str:
    """The version that a release has: `11.3` for a cudatoolkit 11.3.1."""
    return ".".join(version.split(".")[:2]) if kind in _MINOR else version


@lru_cache(maxsize=65536)
def _read(spec: str) -> _Wanted:
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        read = MatchSpec(spec)
    except InvalidMatchSpecError as error:
        raise InputError(f"'{spec}' is not a match specification: {error}") from error
    name = read.name
    return _Wanted(
        name=str(getattr(name, "normalized", name)),
        version=str(read.version) if read.version is not None else "*",
        build=str(read.build) if read.build is not None else "*",
    )


def _scales(records: Iterable[Record], virtual: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """The versions of `__cuda` and glibc that are given, and those that some package names."""
    found = {kind: set(virtual.get(kind, ())) for kind in _VIRTUAL_KINDS.values()}
    for record in records:
        for spec in (*record.depends, *record.constrains):
            name, _, rest = spec.partition(" ")
            if name in _VIRTUAL:
                found[_VIRTUAL_KINDS[name]].update(_named_versions(rest))
    return {kind: frozenset(versions) for kind, versions in found.items()}


def _named_versions(spec: str) -> Iterator[str]:
    """The versions in `>=11.2,<12|10.2.*`, less the upper bounds."""
    for part in spec.replace("|", ",").split(" ")[0].split(","):
        text = part.strip("=>!~").removesuffix(".*")
        if text and not part.startswith("<") and text[0].isdigit() and "a" not in text:
            yield text


def _is_about(spec: str, kinds: Mapping[str, str]) -> bool:
    name = spec.split(" ")[0]
    return name in kinds or name in _VIRTUAL


def _said(origin: str, specs: Iterable[str]) -> str:
    texts = list(specs)
    if not texts:
        return f"{origin} has it"
    more = f" and {len(texts) - 6} more" if len(texts) > 6 else ""
    return f"its builds in {origin} ask for {', '.join(texts[:6])}{more}"
