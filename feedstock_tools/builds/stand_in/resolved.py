"""The channels of a build on this machine: URLs, and the stand-in channel if used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from feedstock_tools.builds.stand_in.channel import StandInChannel, stand_in_channel_of
from feedstock_tools.builds.stand_in.choice import ChannelChoice
from feedstock_tools.channel.repodata import channel_url, read_records
from feedstock_tools.platforms import Platform


@dataclass(frozen=True)
class ResolvedChannels:
    """Channels ready for a build on this machine.

    Attributes:
        urls: the first has priority.
        subdirs: the folders of a channel that a build looks into: the platform's, and `noarch`.
        stand_in: the stand-in channel, if it is the only one.
    """

    urls: tuple[str, ...]
    subdirs: tuple[str, ...]
    stand_in: StandInChannel | None = None

    def has(self, channel: str, name: str) -> bool:
        """Whether a channel (its URL) has any package of a name.

        Raises:
            WorkError: the channel cannot be read.
        """
        if channel not in self._names:
            self._names[channel] = frozenset(record.name for record in read_records(channel, self.subdirs))
        return name in self._names[channel]

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        """The names of packages by channel, for the channels that were queried."""
        return {}


def resolve_channels(
    choice: ChannelChoice, platform: str, pythons: Sequence[str], machine: Mapping[str, str], fallback: Path
) -> ResolvedChannels:
    """The channels of a choice, for builds for a platform; the stand-in channel is created if missing.

    Args:
        pythons: the versions for which the stand-in channel gets real Pythons, as far as this machine has them.
        machine: the environment of the machine.
        fallback: the cache folder if the user has none.

    Raises:
        WorkError: the stand-in channel cannot be created.
        InputError: a channel's name is invalid.
    """
    subdirs = (platform, "noarch")
    if not choice.is_stand_in:
        return ResolvedChannels(tuple(channel_url(channel) for channel in choice.channels), subdirs)
    stand_in = stand_in_channel_of(machine, Platform.parse(platform), pythons, fallback)
    return ResolvedChannels((stand_in.url,), subdirs, stand_in)


def stand_in_metadata(platform: Platform, machine: Mapping[str, str], fallback: Path) -> str:
    """The URL of a stand-in channel for solving only: its Pythons are metadata, since building real ones takes seconds.

    Args:
        machine: the environment of the machine.
        fallback: the cache folder where the user has none.

    Raises:
        WorkError: the channel cannot be created.
    """
    return stand_in_channel_of(machine, platform, (), fallback).url
