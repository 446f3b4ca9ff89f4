"""What a call of `build` works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from feedstock_tools.builds.stand_in.choice import DEFAULT_CHANNELS, STAND_IN, ChannelChoice
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run works with: where, the channels that were given, the environment of the machine.

    `recipe` is the `recipe.yaml` that is built; for a feedstock with a `meta.yaml` it is made from the same spec.
    `needs` is what the spec says that a build takes, `sources` are the local sources that the recipe names, and
    `command` is what was typed, without secrets.
    """

    feedstock: Feedstock
    artifacts: Artifacts
    recipe: Path
    channels: tuple[str, ...]
    machine: Mapping[str, str]
    needs: Mapping[str, object] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()
    command: str = ""

    def possible_channels(self, configuration: PlannedConfiguration) -> tuple[ChannelChoice, ...]:
        """The channels that a build of the configuration may have used, without asking any of them.

        Without channels given, those of the configuration and the stand-in channel both count.
        """
        given = self.channels or configuration.channels or DEFAULT_CHANNELS
        real = () if STAND_IN in given else (ChannelChoice(given),)
        stand_in = () if self.channels and real else (ChannelChoice((STAND_IN,), "listed"),)
        return (*real, *stand_in)
