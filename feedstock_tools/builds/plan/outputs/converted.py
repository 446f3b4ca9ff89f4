"""What a converted recipe builds, compared with what conda-build would name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.workspace import Workspace

_FEW = 3
_HINT = "Use conda-build or a container, or --engine rattler-build to build them under these names."


def name_differences(converted: Sequence[PlannedConfiguration], folder: Path) -> dict[str, list[str]]:
    """Packages that one of the two would build and the other would not, hashes aside: a line each, by configuration.

    Args:
        converted: configurations with the outputs of the converted recipe.
        folder: of the `meta.yaml`.

    Raises:
        InputError: the `meta.yaml` cannot be read.
    """
    from feedstock_tools.builds.plan.outputs.v0 import with_meta_outputs

    originals, _ = with_meta_outputs(converted, folder, {}, Platform.here())
    found = {}
    for before, after in zip(originals, converted, strict=True):
        planned, wanted = _stems(after), _stems(before)
        lines = [f"conda-build would make {stem}" for stem in (wanted - planned).elements()]
        lines += [f"conda-build would not make {stem}" for stem in (planned - wanted).elements()]
        if lines:
            found[before.name] = lines
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
    mistakes = [
        Mistake(f"{name} cannot be built here: its converted recipe makes other packages: {_shortened(lines)}")
        for name, lines in differences.items()
    ]
    raise InputError.of([*mistakes[:-1], Mistake(mistakes[-1].message, hint=_HINT)])


def _shortened(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _FEW} more" if len(lines) > _FEW else ""
    return "; ".join(lines[:_FEW]) + more


def _stems(configuration: PlannedConfiguration) -> Counter[str]:
    from feedstock_tools.to_v1 import without_hash

    return Counter(
        f"{output.subdir}/{output.name}-{output.version}-{without_hash(output.build)}"
        for row in configuration.rows
        for output in row.outputs
    )
