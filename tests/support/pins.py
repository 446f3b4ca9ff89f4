"""The rule that a set of releases must meet, bound by bound: tests compare the answers of the pin graph with it."""

from __future__ import annotations

from feedstock_tools.pins.graph.model import Chosen, PinGraph, Release


def holds(graph: PinGraph, chosen: Chosen) -> bool:
    """Whether all releases of a set exist and meet each other's bounds; an unnamed kind is missing from the set."""
    complete = {kind: chosen.get(kind) for kind in {*graph.versions, *chosen}}
    return all(
        (release := Release(kind, version)) in graph.releases
        and all(bound.open_to(complete) for bound in graph.bounds_of(release))
        for kind, version in complete.items()
        if version is not None
    )
