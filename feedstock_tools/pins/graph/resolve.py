"""Which releases go together: one consistent set for some demands, or every one.

A set has at most one release of each kind and keeps the bounds of all its releases. It has a release of every kind that
is demanded or that another needs, and of each other kind that is asked for one wherever one can join. Sets are tried
newest first, kind after kind in the order of `kinds.KINDS`; of what is a demand on the machine, the least comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from feedstock_tools.errors import InputError
from feedstock_tools.pins.graph.demands import Demand
from feedstock_tools.pins.graph.kinds import kind_named, preferred
from feedstock_tools.pins.graph.model import Chosen, PinGraph, Release

__all__ = ["all_sets", "asked_kinds", "can_hold", "first_set"]


def asked_kinds(graph: PinGraph, demands: Sequence[Demand], only: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds that an answer has: those demanded, and `only` those named, or else the graph's usual ones.

    Raises:
        InputError: the graph has no release of a kind in `only`.
    """
    named = [kind_named(name).name for name in only]
    for name, kind in zip(only, named, strict=True):
        if kind not in graph.versions:
            raise InputError(f"unknown name '{name}'", hint=f"Known are {', '.join(graph.versions)}.")
    demanded = {demand.kind for demand in demands}
    wanted = {*named, *demanded} if only else {*demanded, *(k for k in graph.versions if not kind_named(k).asked_only)}
    return tuple(kind for kind in graph.versions if kind in wanted)


def can_hold(graph: PinGraph, demands: Sequence[Demand], chosen: Chosen = MappingProxyType({})) -> bool:
    """Whether some set with what is `chosen` already (None: without that kind) keeps all demands and bounds."""
    return _Search(graph, demands).can_end(dict(chosen))


def first_set(graph: PinGraph, demands: Sequence[Demand], kinds: Sequence[str]) -> dict[str, str] | None:
    """The set that is tried first among those that hold; kinds of which there can be none are left out of it."""
    return next(all_sets(graph, demands, kinds), None)


def all_sets(graph: PinGraph, demands: Sequence[Demand], kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every set that holds, in the order in which they are tried.

    Of kinds that are demands on the machine (driver, glibc), each set has the least that will do: such kinds do not
    multiply the sets.
    """
    search = _Search(graph, demands)
    needless = [kind for kind in kinds if not kind_named(kind).least]
    least = [kind for kind in kinds if kind_named(kind).least]
    for chosen in search.sets(needless, {}):
        completed = next(filter(search.is_full, search.sets(least, chosen)), None)
        if completed is not None:
            # What a release needs beyond the kinds asked for is in the set too, so that it can be checked.
            whole = search.with_needed(completed)
            yield {kind: version for kind in graph.versions if (version := whole.get(kind)) is not None}


class _Search:
    """One question to the graph: the versions that demands leave of each kind, and the search over them."""

    def __init__(self, graph: PinGraph, demands: Sequence[Demand]) -> None:
        self._graph = graph
        self._demanded = tuple(dict.fromkeys(demand.kind for demand in demands))
        self._left = {
            kind: preferred(kind, (v for v in versions if all(d.admits(v) for d in demands if d.kind == kind)))
            for kind, versions in graph.versions.items()
        }

    def sets(self, kinds: Sequence[str], chosen: dict[str, str | None]) -> Iterator[dict[str, str | None]]:
        """Every choice for `kinds` on top of `chosen` that can still end well, in order; None where none may join.

        Of those that `is_full` rejects, the ones that can be told early are left out.
        """
        if not kinds:
            yield chosen
            return
        kind, rest = kinds[0], kinds[1:]
        versions = self._open(kind, chosen)
        for version in versions:
            joined = {**chosen, kind: version}
            if self.can_end(joined):
                yield from self.sets(rest, joined)
        if kind in self._demanded or (versions and self._is_settled(kind, chosen)):
            return
        without = {**chosen, kind: None}
        if self.can_end(without):
            yield from self.sets(rest, without)

    def is_full(self, chosen: Chosen) -> bool:
        """Whether no release of a kind that is left out could join after all."""
        decided: dict[str, str | None] = {kind: version for kind, version in chosen.items() if version is not None}
        return not any(
            self.can_end({**decided, kind: candidate})
            for kind, version in chosen.items()
            if version is None
            for candidate in self._open(kind, decided)
        )

    def _is_settled(self, kind: str, chosen: Chosen) -> bool:
        """Whether all that a kind is bound to has a version already: what can join now can join whatever follows.

        A set without it would not be full then, however it went on.
        """
        return all(chosen.get(other) is not None for other in self._graph.beside.get(kind, ()))

    def can_end(self, chosen: dict[str, str | None]) -> bool:
        """Whether what is chosen can be completed with what is demanded and needed; other kinds may be left out."""
        return self._alive(chosen) and self._ending(chosen) is not None

    def with_needed(self, chosen: dict[str, str | None]) -> dict[str, str | None]:
        """What is chosen, completed with what is demanded and needed."""
        return self._ending(chosen) or chosen

    def _alive(self, chosen: dict[str, str | None]) -> bool:
        """Whether each release that is chosen is there, each demand can still be kept, and no bound is broken."""
        for kind, version in chosen.items():
            if version is None:
                if kind in self._demanded:
                    return False
                continue
            release = Release(kind, version)
            bounds = self._graph.bounds_of(release)
            if release not in self._graph.releases or not all(bound.open_to(chosen) for bound in bounds):
                return False
        return True

    def _ending(self, chosen: dict[str, str | None]) -> dict[str, str | None] | None:
        options: list[tuple[Sequence[str | None], str]] = [
            (self._open(kind, chosen), kind) for kind in self._demanded if kind not in chosen
        ]
        options = options or self._needs(chosen)
        if not options:
            return chosen
        versions, kind = min(options, key=lambda option: len(option[0]))
        for version in versions:
            joined = {**chosen, kind: version}
            if (version is not None or self._alive(joined)) and (ending := self._ending(joined)) is not None:
                return ending
        return None

    def _needs(self, chosen: dict[str, str | None]) -> list[tuple[Sequence[str | None], str]]:
        """A kind of which a release must still be there for some bound to hold, with the versions that may do."""
        for kind, version in chosen.items():
            if version is None:
                continue
            for bound in self._graph.bounds_of(Release(kind, version)):
                lacking = [frozenset(way.needed - chosen.keys()) for way in bound.ways if way.open_to(chosen)]
                if all(lacking):
                    common = frozenset.intersection(*lacking)
                    wanted = min(common or frozenset.union(*lacking))
                    # Where another way can do without this kind, to have none of it is a choice too.
                    return [([*self._open(wanted, chosen), *(() if common else (None,))], wanted)]
        return []

    def _open(self, kind: str, chosen: Chosen) -> Sequence[str]:
        return [version for version in self._left.get(kind, ()) if self._graph.open_to(chosen, Release(kind, version))]
