"""The order in which conda-build builds the outputs of a recipe: dependencies first, then by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.specs import spec_name


def sort_by_dependencies(
    packages: Sequence[tuple[str, Mapping[str, Sequence[str]], str]], path: Path | None = None
) -> list[int]:
    """The indices of `packages` (name, requirements by environment, type) in building order.

    Outputs with the same name keep their order; wheels and the like come last.

    Raises:
        InputError: the outputs form a cycle.
    """
    places: dict[str, list[int]] = {}
    last = []
    for place, (name, _, kind) in enumerate(packages):
        if kind.startswith("conda"):
            places.setdefault(name, []).append(place)
        else:
            last.append(place)
    needs: dict[str, set[str]] = {name: set() for name in places}
    for name, requirements, kind in packages:
        if not kind.startswith("conda"):
            continue
        sections = ("run", "host") if "host" in requirements else ("run", "host", "build")
        specs = (spec for section in sections for spec in requirements.get(section, ()) if spec)
        needs[name].update({spec_name(spec) for spec in specs} & needs.keys() - {name})
    order: list[int] = []
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = ", ".join(sorted(set(error.args[1])))
        raise InputError(f"outputs depend on each other in a cycle: {circle}", path=path) from error
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        for name in ready:
            order.extend(places[name])
        sorter.done(*ready)
    return [*order, *last]
