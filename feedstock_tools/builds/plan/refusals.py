"""Configurations that cannot be built on this machine, and the messages about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.choice import Engines
    from feedstock_tools.builds.plan.workspace import Workspace


_FEW = 3
_HINT = "Use conda-build or a container, or --engine rattler-build to build them under these names."


def refused(chosen: Sequence[PlannedConfiguration], engines: Engines) -> dict[str, str]:
    """The configurations that cannot be built on this machine: name → reason."""
    return {configuration.name: reason for configuration in chosen if (reason := engines.why_not(configuration))}


def left_to_others(chosen: Sequence[PlannedConfiguration], engines: Engines) -> dict[str, str]:
    """The configurations that another machine must build: name → reason.

    One whose recipe cannot be rendered is not among them: that is a mistake to report, wherever it is built.

    Raises:
        InputError: this machine can build none of them.
    """
    reasons = {
        configuration.name: reason for configuration in chosen if (reason := engines.why_elsewhere(configuration))
    }
    if len(reasons) == len(chosen):
        refuse_unbuildable(chosen, engines)
    return reasons


def refuse_unbuildable(chosen: Sequence[PlannedConfiguration], engines: Engines) -> None:
    """Refuse a run if a part of it cannot be built on this machine.

    Raises:
        InputError: some of it cannot be built; every reason, with its configurations.
    """
    refuse(refused(chosen, engines), some=len(chosen), titles=titles_of(chosen))


def titles_of(configurations: Iterable[PlannedConfiguration]) -> dict[str, str]:
    """The short name of each configuration, by its name."""
    return {configuration.name: configuration.short_name for configuration in configurations}


def refuse(
    reasons: Mapping[str, str], *, some: int, where: str = "here", titles: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse to build configurations, if there is a reason (name → reason).

    Args:
        some: the number of all chosen configurations.
        where, titles: as for `in_words`.

    Raises:
        InputError: there is a reason; every reason, with its configurations.
    """
    hint = "Use --all to build the others." if len(reasons) < some else None
    mistakes = [Mistake(sentence) for sentence in in_words(reasons, where, titles)]
    if mistakes:
        raise InputError.of([*mistakes[:-1], Mistake(mistakes[-1].message, hint=hint)])


def in_words(
    reasons: Mapping[str, str], where: str = "here", titles: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """A sentence for each reason, with its configurations (name → reason).

    Args:
        where: on which machine or machines.
        titles: the short names of configurations, as far as known.
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(titles.get(name, name))
    for reason, names in by_reason.items():
        subject = names[0] if len(names) == 1 else f"{len(names)} configurations ({names[0]} … {names[-1]})"
        yield f"{subject} cannot be built {where}: {reason}"


def name_differences(converted: Sequence[PlannedConfiguration], folder: Path) -> dict[str, list[str]]:
    """Packages that one of the two would build and the other would not, hashes aside: a line each, by configuration.

    Args:
        converted: configurations with the outputs of the converted recipe.
        folder: of the `meta.yaml`.
    """
    from feedstock_tools.builds.plan.rendering import outputs_of_meta
    from feedstock_tools.recipe.v0.recipe import read_recipe

    recipe, builder = read_recipe(folder), Platform.here()
    found = {}
    for configuration in converted:
        rows = configuration.rows
        try:
            rendered = [each for row in rows for each in outputs_of_meta(recipe, row, builder).values()]
        except InputError:
            continue  # the converted recipe says why
        wanted = Counter(
            _stem("noarch" if each.noarch else configuration.platform, each.name, each.version, each.build_string)
            for each in rendered
        )
        planned = Counter(
            _stem(each.subdir, each.name, each.version, each.build) for row in rows for each in row.outputs
        )
        lines = [f"conda-build would make {stem}" for stem in (wanted - planned).elements()]
        lines += [f"conda-build would not make {stem}" for stem in (planned - wanted).elements()]
        if lines:
            found[configuration.name] = lines
    return found


def refuse_other_names(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> None:
    """Refuse configurations whose packages a converted recipe names otherwise, unless `--engine` names its engine.

    Raises:
        InputError: there are some; with the packages.
    """
    if workspace.conversion is None or workspace.conversion.recipe is None or workspace.engines.given is not None:
        return
    differences = name_differences(chosen, workspace.feedstock.recipe)
    if not differences:
        return
    titles = titles_of(chosen)
    mistakes = [
        Mistake(f"{titles[name]} cannot be built here: its converted recipe makes other packages: {_shortened(lines)}")
        for name, lines in differences.items()
    ]
    raise InputError.of([*mistakes[:-1], Mistake(mistakes[-1].message, hint=_HINT)])


def _shortened(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _FEW} more" if len(lines) > _FEW else ""
    return "; ".join(lines[:_FEW]) + more


def _stem(subdir: str, name: str, version: str, build: str) -> str:
    from feedstock_tools.to_v1 import without_hash

    return f"{subdir}/{name}-{version}-{without_hash(build)}"
