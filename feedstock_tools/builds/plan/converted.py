"""What a converted recipe builds, compared with what conda-build would name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.builds.plan.outputs_v0 import with_meta_outputs
from feedstock_tools.edit.to_v1.comparison import without_hash
from feedstock_tools.feedstock.planned import PlannedConfiguration

__all__ = ["name_differences"]


def name_differences(converted: Sequence[PlannedConfiguration], folder: Path) -> list[str]:
    """Packages that one of the two would build and the other would not, hashes aside: a line each.

    Args:
        converted: configurations with the outputs of the converted recipe.
        folder: of the `meta.yaml`.

    Raises:
        InputError: the `meta.yaml` cannot be read.
    """
    originals, _ = with_meta_outputs(converted, folder, {})
    lines = []
    for before, after in zip(originals, converted, strict=True):
        planned, wanted = _stems(after), _stems(before)
        lines += [f"{before.name}: conda-build would make {stem}" for stem in (wanted - planned).elements()]
        lines += [f"{before.name}: conda-build would not make {stem}" for stem in (planned - wanted).elements()]
    return lines


def _stems(configuration: PlannedConfiguration) -> Counter[str]:
    return Counter(
        f"{output.subdir}/{output.name}-{output.version}-{without_hash(output.build)}"
        for row in configuration.rows
        for output in row.outputs
    )
