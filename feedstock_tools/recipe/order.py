"""The order in which conda-build builds the outputs of a recipe: dependencies first, then by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.specs import spec_name

__all__ = ["sort_by_dependencies"]


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
    while needs:
        ready = sorted(name for name, wanted in needs.items() if not wanted)
        if not ready:
            raise InputError(f"outputs depend on each other in a cycle: {', '.join(sorted(needs))}", path=path)
        for name in ready:
            order.extend(places[name])
            del needs[name]
        for wanted in needs.values():
            wanted.difference_update(ready)
    return [*order, *last]
