"""Why some demands are incompatible: the smallest conflict, a sentence for each demand, and what would work."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from feedstock_tools.facts.frameworks import load_frameworks
from feedstock_tools.pins.graph.kinds import KINDS, WHEELS, Demand, kind_named, newest_first, parse_demand
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way, kinds_between
from feedstock_tools.pins.graph.resolve import is_satisfiable
from feedstock_tools.versions import parse_version

_MOST = 8
#: Kinds that name a system.
_OF_SYSTEMS = frozenset({"platform", "visual-studio"})
#: Kinds whose releases the facts name one by one.
_FROM_FACTS = frozenset({"cuda", "cudnn", "nccl", "cutensor"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """A minimal set of incompatible demands: without any one of them the others are compatible.

    `sentences` has one for each demand; `nearest` are complete lists of demands that work, each with one demand changed
    as little as possible, the least change first. `unknown`: only missing facts stand against them.
    """

    demands: tuple[Demand, ...]
    sentences: tuple[str, ...]
    nearest: tuple[tuple[Demand, ...], ...]
    unknown: bool = False

    def __str__(self) -> str:
        subject = " and ".join(str(demand) for demand in self.demands)
        if self.unknown:
            lines = [
                f"It is not known whether {subject} {'are compatible' if len(self.demands) > 1 else 'is available'}:"
            ]
        else:
            lines = [f"{subject} are incompatible:" if len(self.demands) > 1 else f"{subject} is not available:"]
        lines += [f"  {sentence}" for sentence in self.sentences]
        if self.nearest:
            lines.append(f"The nearest that would work: {' '.join(_quoted(d) for d in self.nearest[0])}")
            lines += [f"or: {' '.join(_quoted(demand) for demand in demands)}" for demands in self.nearest[1:]]
        return "\n".join(lines)


def explain(graph: PinGraph, demands: Sequence[Demand]) -> Conflict | None:
    """Why no set meets the demands; None if one does."""
    if is_satisfiable(graph, demands):
        return None
    certain = graph.without_unknown()
    decides = graph if is_satisfiable(certain, demands) else certain  # what is certain comes before what is not known
    # The architecture of a GPU says more than its drivers, where it is reason enough.
    by_architecture = [_architecture_of(graph, demand) for demand in demands]
    if not is_satisfiable(decides, by_architecture):
        demands = by_architecture
    fewest = smallest_conflict(decides, demands)
    # What is not known of drivers for Windows leaves what is known for Linux, which is meant where no system is named.
    kinds = {demand.kind for demand in demands}
    on_linux = (Demand("platform", "linux-64", ""),) if "driver" in kinds and not kinds & _OF_SYSTEMS else ()
    unknown = is_satisfiable(certain, [*fewest, *on_linux])
    unknown = unknown or any(_beyond(graph, demand) for demand in fewest)
    about = kinds | ({"sm"} if "gpu" in kinds else set())
    not_known = {demand: _not_known(graph, demand, about) for demand in fewest} if unknown else {}
    sentences = tuple(not_known.get(demand) or _sentence(graph, demand, fewest) for demand in fewest)
    nearest = (kept for kept in _nearest(graph, tuple(demands), fewest) if is_satisfiable(graph, _as_asked(kept)))
    return Conflict(fewest, sentences, tuple(nearest), unknown)


def _means_gpu(demand: Demand) -> bool:
    """Whether a demand for an architecture was made of one for a GPU."""
    return demand.kind == "sm" and kind_named(demand.text.partition("=")[0]).name == "gpu"


def _as_asked(demands: Iterable[Demand]) -> list[Demand]:
    """Demands with those for GPUs, where they were taken for their architectures."""
    return [parse_demand(demand.text) if _means_gpu(demand) else demand for demand in demands]


def _architecture_of(graph: PinGraph, demand: Demand) -> Demand:
    """A demand for a GPU as one for its architecture, with its own text; any other demand as it is."""
    if demand.kind != "gpu":
        return demand
    ways = (way for bound in graph.bounds_of(Release("gpu", demand.spec)) for way in bound.ways)
    (number,) = next(way.allowed["sm"] for way in ways if "sm" in way.allowed)
    return Demand("sm", number, demand.text)


def smallest_conflict(graph: PinGraph, demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """The smallest conflict among some demands (all of them if there is none: call `is_satisfiable` first).

    Demands are dropped one by one while no set meets the rest, which yields a minimal conflict; then every
    smaller choice is tried, which yields the smallest.
    """
    rest = list(demands)
    for demand in demands:
        without = [other for other in rest if other != demand]
        if not is_satisfiable(graph, without):
            rest = without
    for size in range(1, len(rest)):
        for few in combinations(demands, size):
            if not is_satisfiable(graph, few):
                return few
    return tuple(rest)


def _sentence(graph: PinGraph, demand: Demand, conflict: Sequence[Demand]) -> str:
    versions = graph.versions.get(demand.kind, ())
    matching = [version for version in versions if demand.admits(version)]
    title = kind_named(demand.kind).title
    if not matching:
        if not versions:
            reason = load_frameworks().without_wheels.get(demand.kind)
            return f"{demand}: {reason or f'there is no {title} in {graph.name}'}."
        reason = load_frameworks().without_cuda.get(demand.spec) if demand.kind == "platform" else None
        if reason is not None:
            return f"{demand}: {reason}."
        there_are = _listed(newest_first(demand.kind, versions)[::-1])
        origin = graph.origins.get(demand.kind, graph.name)
        beyond = _beyond(graph, demand)
        if beyond:
            return f"{demand}: it is {beyond} every {title} in {origin}; there are {there_are}."
        return f"{demand}: there is no such {title} in {origin}; there are {there_are}."
    if len(conflict) == 1:
        bound = _closed_bound(graph, demand.kind, matching)
        return f"{demand}: {bound.said}{_cited(bound)}." if bound else f"{demand}: its requirements are not available."
    others = {other.kind: other for other in conflict if other.kind != demand.kind}
    example = Release(demand.kind, _nearest_match(graph, demand, matching, tuple(others.values())))
    bounds = _telling_bounds(graph, example, others)
    if bounds:
        chosen = f" ({example})" if len(matching) > 1 else ""
        return f"{demand}{chosen}: {'; '.join(dict.fromkeys(f'{bound.said}{_cited(bound)}' for bound in bounds))}."
    by_platform = [bound for bound in graph.bounds_of(example) if bound.kinds == {"platform"}]
    if by_platform and any(kinds_between(graph, demand.kind, kind) == ("platform",) for kind in others):
        return f"{demand}: {'; '.join(f'{bound.said}{_cited(bound)}' for bound in by_platform)}."
    parts = [part for kind in others if (part := _restriction(graph, demand, kind)) is not None]
    if parts:
        return f"{demand} goes with {'; with '.join(parts)}."
    if not others:
        return f"{demand}: it leaves {title} {_listed(newest_first(demand.kind, matching)[::-1])}."
    reached = " and ".join(f"{other}{_by_way(graph, demand.kind, kind)}" for kind, other in others.items())
    return f"{demand}: what else it needs leaves no room for {reached}."


def _not_known(graph: PinGraph, demand: Demand, kinds: Collection[str]) -> str:
    """The unknown bounds between the newest release of a demand that has some and the demanded kinds; else empty."""
    for version in (version for version in graph.versions.get(demand.kind, ()) if demand.admits(version)):
        bounds = graph.bounds_of(Release(demand.kind, version))
        if missing := [bound for bound in bounds if bound.unknown and bound.kinds <= {*kinds}]:
            return f"{demand}: {'; '.join(f'{bound.said}{_cited(bound)}' for bound in missing)}."
    return ""


def _beyond(graph: PinGraph, demand: Demand) -> str:
    """Whether a demand is for something `newer than` or `older than` all that the facts know, about which they say
    nothing; else empty."""
    versions = [version for version in graph.versions.get(demand.kind, ()) if version[:1].isdigit()]
    named = re.fullmatch(r"(?:==)?(\d+(?:\.\d+)*)(?:\.\*)?", demand.spec)
    if demand.kind not in _FROM_FACTS or not versions or named is None or any(map(demand.admits, versions)):
        return ""
    wanted = parse_version(named[1])
    if wanted > parse_version(versions[0]):
        return "newer than"
    return "older than" if wanted < parse_version(versions[-1]) else ""


def _by_way(graph: PinGraph, kind: str, other: str) -> str:
    """The kinds through which the bounds of one kind lead to another, in brackets; empty where a bound names both."""
    between = kinds_between(graph, kind, other)
    return f" (by way of {' and '.join(kind_named(other).title for other in between)})" if between else ""


def _nearest_match(graph: PinGraph, demand: Demand, matching: Sequence[str], others: Sequence[Demand]) -> str:
    """The version among those that a demand allows that comes nearest to working with the others."""
    replaced = _replacement(graph, demand, others)
    if replaced is None:
        return matching[0]
    order = graph.versions[demand.kind].index
    goal = order(replaced[1].spec.removeprefix("=="))
    return min(matching, key=lambda version: abs(order(version) - goal))


def _telling_bounds(graph: PinGraph, release: Release, others: Mapping[str, Demand]) -> list[Bound]:
    """The bounds of a release that exclude what others demand, or else those that allow only some of their kinds."""
    excluding, restricting = [], []
    for bound in graph.bounds_of(release):
        if all(_excludes(way, others) for way in bound.ways):
            excluding.append(bound)
            continue
        for kind in bound.kinds & others.keys():
            versions = frozenset(graph.versions.get(kind, ()))
            let_in = frozenset().union(*(way.allowed.get(kind, versions) for way in bound.ways)) & versions
            if any(others[kind].admits(version) for version in versions - let_in):
                restricting.append(bound)
    telling = [bound for bound in excluding if bound.kinds <= others.keys()]
    return telling or excluding or restricting


def _excludes(way: Way, others: Mapping[str, Demand]) -> bool:
    return any(
        kind in others and not any(others[kind].admits(version) for version in allowed)
        for kind, allowed in way.allowed.items()
    )


def _closed_bound(graph: PinGraph, kind: str, versions: Sequence[str]) -> Bound | None:
    """A bound that no release can meet, of the newest version that has one."""
    bounds = [bound for version in versions for bound in graph.bounds_of(Release(kind, version))]
    return next((bound for bound in bounds if all(_closed(graph, way) for way in bound.ways)), None)


def _closed(graph: PinGraph, way: Way) -> bool:
    return any(not way.allowed[kind] & frozenset(graph.versions.get(kind, ())) for kind in way.needed)


def _restriction(graph: PinGraph, demand: Demand, kind: str) -> str | None:
    versions = graph.versions.get(kind, ())
    exact = {version: Demand(kind, _exact(kind, version), "") for version in versions}
    going = [version for version in versions if is_satisfiable(graph, [*_as_asked([demand]), exact[version]])]
    if len(going) == len(versions):
        return None
    title = kind_named(kind).title
    subject = (
        f"{title} {_listed(newest_first(kind, going)[::-1])}"
        if going
        else f"no {'such ' if kind == 'gpu' else ''}{title}{' on PyPI' if graph.origins.get(kind) == WHEELS else ''}"
    )
    return f"{subject}{_by_way(graph, demand.kind, kind)}"


def _nearest(graph: PinGraph, demands: tuple[Demand, ...], fewest: Sequence[Demand]) -> tuple[tuple[Demand, ...], ...]:
    """Lists of demands that work, each with one demand of the conflict at the nearest version that works."""
    nearest = []
    for changed in fewest:
        if _means_gpu(changed):
            continue  # another architecture is no GPU that anybody has
        others = tuple(demand for demand in demands if demand.kind != changed.kind)
        replaced = _replacement(graph, changed, others)
        if replaced is not None:
            distance, demand = replaced
            order = list(KINDS).index(changed.kind) if changed.kind in KINDS else len(KINDS)
            kept = [demand if other == changed else other for other in demands if other == changed or other in others]
            nearest.append((changed.kind in ("platform", "sm"), distance, -order, tuple(kept)))
    if not nearest:
        possible = _compatible_demands(graph, demands)
        owned = [demand for demand in demands if demand.kind == "gpu" or _means_gpu(demand)]
        return (possible,) if possible and all(demand in possible for demand in owned) else ()
    return tuple(kept for *_, kept in sorted(nearest, key=lambda item: item[:3]))


def _replacement(graph: PinGraph, demand: Demand, others: Sequence[Demand]) -> tuple[int, Demand] | None:
    """The demand for the nearest version of the same kind that works with the others, and its distance in steps.

    A driver is one for Linux unless the others ask for another system.
    """
    on_linux = [*others, Demand("platform", "linux-64", "")]
    beside = [on_linux] if demand.kind == "driver" and all(other.kind != "platform" for other in others) else []
    for kept in (*beside, others):
        for steps, version in enumerate(_by_distance(graph, demand)):
            nearer = Demand(demand.kind, _exact(demand.kind, version), f"{demand.kind}={version}")
            if is_satisfiable(graph, [*kept, nearer]):
                return steps, nearer
    return None


def _by_distance(graph: PinGraph, demand: Demand) -> Iterator[str]:
    """The versions of a demand's kind, those nearest to the demand first; of two at a distance the one of its major."""
    major = ""
    versions = list(graph.versions.get(demand.kind, ()))
    if demand.kind == "platform":  # none is nearer than another: in the order of preference
        yield from versions
        return
    matching = [index for index, version in enumerate(versions) if demand.admits(version)]
    if matching:
        places = dict.fromkeys(range(len(versions)), 0)
        for index in places:
            places[index] = min(abs(index - other) for other in matching)
    else:
        named = demand.spec.strip("=<>!~").removesuffix(".*").split(",")[0].split("|")[0]
        ordered, major = _placed(demand.kind, versions, named), f"{named.split('.')[0]}."
        places = {index: abs(2 * index + 1 - 2 * ordered) for index in range(len(versions))}

    def order(index: int) -> tuple[int, bool, int]:
        return places[index], not versions[index].startswith(major), index

    yield from (versions[index] for index in sorted(places, key=order))


def _placed(kind: str, versions: Sequence[str], named: str) -> int:
    """The number of versions (newest first) that are newer than a given one; all if it is not a version."""
    if not named or not named[0].isdigit():
        return len(versions)
    return list(newest_first(kind, [*versions, named])).index(named)


def _compatible_demands(graph: PinGraph, demands: Iterable[Demand]) -> tuple[Demand, ...]:
    """The demands in their order; one that conflicts with those before it is changed, or dropped."""
    possible: list[Demand] = []
    for demand in demands:
        if is_satisfiable(graph, [*possible, demand]):
            possible.append(demand)
        elif (
            demand.kind not in {other.kind for other in possible}
            and not _means_gpu(demand)
            and (nearer := _replacement(graph, demand, possible))
        ):
            possible.append(nearer[1])
    return tuple(possible)


def _exact(kind: str, version: str) -> str:
    return f"=={version}" if kind_named(kind).versioned else version


def _cited(bound: Bound) -> str:
    sources = bound.sources
    return f" [{sources[0]}]" if sources and sources[0] and len(sources) == 1 else ""


def _listed(words: Sequence[str]) -> str:
    if len(words) <= _MOST:
        return ", ".join(words)
    return f"{', '.join(words[:2])}, … {', '.join(words[-(_MOST - 3) :])}"


def _quoted(demand: Demand) -> str:
    text = str(demand)
    return f"'{text}'" if any(sign in text for sign in " <>|*!") else text
