"""Which releases go together: one consistent set for some demands, or every one.

A set has at most one release of each kind and meets the bounds of all its releases. It has a release of every kind that
is demanded or that another needs, and of each other requested kind if one can join. Sets are tried
newest first, kind after kind in the order of `kinds.KINDS`; requirements on the machine start with the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from feedstock_tools.errors import InputError
from feedstock_tools.pins.graph.kinds import Demand, kind_named
from feedstock_tools.pins.graph.model import Chosen, PinGraph, Release


def asked_kinds(graph: PinGraph, demands: Sequence[Demand], only: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of an answer: the demanded ones, and those in `only`, or else the graph's usual ones.

    Raises:
        InputError: the graph has no release of a kind in `only`.
    """
    named = [kind_named(name).name for name in only]
    for name, kind in zip(only, named, strict=True):
        if kind not in graph.versions:
            raise InputError(f"unknown name '{name}'", hint=f"Known names: {', '.join(graph.versions)}.")
    demanded = {demand.kind for demand in demands}
    usual = (kind for kind in graph.versions if not kind_named(kind).asked_only)
    wanted = {*named, *demanded} if only else {*demanded, *usual}
    return tuple(kind for kind in graph.versions if kind in wanted)


def is_satisfiable(graph: PinGraph, demands: Sequence[Demand]) -> bool:
    return _Search(graph, demands).is_completable({})


def all_sets(graph: PinGraph, demands: Sequence[Demand], kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every set that meets the demands, in the order in which they are tried.

    For kinds that are requirements on the machine (driver, glibc), each set has the minimum: such kinds do not
    multiply the sets.
    """
    search = _Search(graph, demands, kinds)
    of_choice = [kind for kind in kinds if not kind_named(kind).least]
    of_machine = [kind for kind in kinds if kind_named(kind).least]
    for chosen in search.sets(of_choice, {}):
        completed = next(filter(search.is_full, search.sets(of_machine, chosen)), None)
        if completed is not None:
            # The set also contains what a release needs beyond the requested kinds, so that it can be checked.
            with_needed = search.with_needed(completed)
            yield {kind: version for kind in graph.versions if (version := with_needed.get(kind)) is not None}


class _Search:
    """One question to the graph: the versions of each kind that meet the demands, and the search over them."""

    def __init__(self, graph: PinGraph, demands: Sequence[Demand], kinds: Sequence[str] = ()) -> None:
        self._graph = graph
        self._demanded = tuple(dict.fromkeys(demand.kind for demand in demands))
        #: The kinds that a set may have: those asked for, and those that some release needs.
        self._possible = frozenset(kinds) | graph.needed | {*self._demanded} if kinds else frozenset(graph.versions)
        self._left = dict(graph.preferred)
        for demand in demands:
            admitted = graph.admitted(demand)
            left = self._left.get(demand.kind, ())
            self._left[demand.kind] = tuple(version for version in left if version in admitted)

    def sets(self, kinds: Sequence[str], chosen: dict[str, str | None]) -> Iterator[dict[str, str | None]]:
        """Every choice for `kinds` on top of `chosen` that can still succeed, in order; None for a kind without
        release.

        Choices that `is_full` would reject are left out if that is clear early.
        """
        if not kinds:
            yield chosen
            return
        kind, rest = kinds[0], kinds[1:]
        versions = self._open(kind, chosen)
        for version in versions:
            joined = {**chosen, kind: version}
            if self.is_completable(joined):
                yield from self.sets(rest, joined)
        if kind in self._demanded or (versions and self._is_settled(kind, chosen)):
            return
        without = {**chosen, kind: None}
        if self.is_completable(without):
            yield from self.sets(rest, without)

    def is_full(self, chosen: Chosen) -> bool:
        """Whether no release of an omitted kind could still join."""
        decided: dict[str, str | None] = {kind: version for kind, version in chosen.items() if version is not None}
        return not any(
            self.is_completable({**decided, kind: candidate})
            for kind, version in chosen.items()
            if version is None
            for candidate in self._open(kind, decided)
        )

    def _is_settled(self, kind: str, chosen: Chosen) -> bool:
        """Whether all kinds bound to this one already have a version: a release that can join now can always join.

        A set without it would not be full then, whatever follows. Kinds that never get a version do not count.
        """
        neighbours = self._graph.beside.get(kind, ())
        return all(chosen.get(other) is not None for other in neighbours if other in self._possible)

    def is_completable(self, chosen: dict[str, str | None]) -> bool:
        """Whether the choice can be completed with all demanded and needed kinds; others may be left out."""
        return self._is_consistent(chosen) and self._completed(chosen) is not None

    def with_needed(self, chosen: dict[str, str | None]) -> dict[str, str | None]:
        """The choice, completed with all demanded and needed kinds."""
        return self._completed(chosen) or chosen

    def _is_consistent(self, chosen: dict[str, str | None]) -> bool:
        """Whether each chosen release exists, each demand can still be met, and no bound is violated."""
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

    def _completed(self, chosen: dict[str, str | None]) -> dict[str, str | None] | None:
        """The choice with a version for each demanded and needed kind, the kind with the fewest first; None if none."""
        demanded = [(self._open(kind, chosen), kind) for kind in self._demanded if kind not in chosen]
        option = min(demanded, key=lambda option: len(option[0])) if demanded else self._needed(chosen)
        if option is None:
            return chosen
        versions, kind = option
        for version in versions:
            joined = {**chosen, kind: version}
            if version is None and not self._is_consistent(joined):
                continue
            if (completed := self._completed(joined)) is not None:
                return completed
        return None

    def _needed(self, chosen: dict[str, str | None]) -> tuple[Sequence[str | None], str] | None:
        """The versions that meet what some bound still needs, and their kind; None if nothing is needed."""
        for kind, version in chosen.items():
            if version is None:
                continue
            for bound in self._graph.bounds_of(Release(kind, version)):
                lacking = [frozenset(way.needed - chosen.keys()) for way in bound.ways if way.open_to(chosen)]
                if all(lacking):
                    common = frozenset.intersection(*lacking)
                    wanted = min(common or frozenset.union(*lacking))
                    # If another way works without this kind, leaving it out is a choice too.
                    return [*self._open(wanted, chosen), *(() if common else (None,))], wanted
        return None

    def _open(self, kind: str, chosen: Chosen) -> Sequence[str]:
        return self._graph.open_versions(chosen, kind, self._left.get(kind, ()))
