"""What a call of `build` works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.feedstock import Feedstock

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run works with: where, the channels that were given, the environment of the machine.

    `recipe` is the `recipe.yaml` that is built; for a feedstock with a `meta.yaml` it is made from the same spec.
    """

    feedstock: Feedstock
    artifacts: Artifacts
    recipe: Path
    channels: tuple[str, ...]
    machine: Mapping[str, str]
