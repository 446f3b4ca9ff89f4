"""The channels of a rehearsal: those that a build would use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from feedstock_tools.builds.stand_in.choice import choose_channels
from feedstock_tools.builds.stand_in.resolved import stand_in_metadata
from feedstock_tools.check.rehearsal.of_feedstock import RehearsalChannels, platforms_of
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.rules import Rules


def channels_to_rehearse(
    feedstock: Feedstock,
    artifacts: Artifacts,
    configurations: Sequence[Configuration],
    requested: Sequence[str],
    machine: Mapping[str, str],
) -> RehearsalChannels:
    """The channels for some configurations, on their platforms and those of the machines that build them.

    Args:
        artifacts: the folder of artifacts, with the cache of channels that answered.
        requested: the channels from the command line; none to use those of the configurations, and the stand-in channel
            if none of these can be reached. Each channel counts once.
        machine: the environment of the machine.

    Raises:
        InputError: the feedstock's conda-forge.yml or a channel's name is invalid.
        WorkError: a channel cannot be reached.
    """
    listed = [configuration.values.get("channel_sources", ("",))[0].split(",") for configuration in configurations]
    configured = dict.fromkeys(name.strip() for names in listed for name in names if name.strip())
    choice = choose_channels(requested, tuple(configured), artifacts)
    platforms = platforms_of(read_forge(feedstock.folder, Rules.newest()), configurations)
    if not choice.is_stand_in:
        return RehearsalChannels({platform.subdir: choice.channels for platform in platforms})
    by_subdir = {platform.subdir: (stand_in_metadata(platform, machine, artifacts.cache),) for platform in platforms}
    return RehearsalChannels(by_subdir, choice.why_stand_in)
