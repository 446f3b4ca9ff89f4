"""The channels of a rehearsal: those that a build would use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from feedstock_tools.builds.channels import choose_channels, names_to_solve_in
from feedstock_tools.check.rehearsal import RehearsalChannels, platforms_of
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.rerender.configuration import Configuration
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
    channels = choose_channels(requested, tuple(configured), artifacts)
    platforms = platforms_of(read_forge(feedstock.folder, Rules.newest()), configurations)
    by_subdir = names_to_solve_in(channels, platforms, machine, artifacts.cache)
    return RehearsalChannels(by_subdir, None if channels.properties.is_complete else channels.why)
