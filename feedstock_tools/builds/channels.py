"""The channels of builds: chosen, opened on this machine, and their part of an identity.

The given channels are used, else those of the configuration, and if none of them answers, the stand-in channel. This
is the only place that knows how channels are opened; all others ask for their properties.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.channel.properties import (
    REAL,
    STAND_IN,
    ChannelDemand,
    ChannelProperties,
    Channels,
    local_folder,
    why_no_channel,
)
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.channel.pip import Watch
    from feedstock_tools.check.rehearsal import RehearsalChannels
    from feedstock_tools.feedstock.folder import Feedstock
    from feedstock_tools.rerender.configuration import Configuration

#: The channel of a build if neither its configuration nor the command line names one.
DEFAULT_CHANNELS = ("conda-forge",)
#: How long the result of a channel check is cached, in seconds.
_BELIEVED = 600
_CACHE = "channels-asked"


def choose_channels(
    requested: Sequence[str],
    configured: Sequence[str],
    artifacts: Artifacts,
    ask: Callable[[str], str | None] | None = None,
) -> Channels:
    """Decide on the channels.

    Given channels are used or the build fails. Those of the configuration (default: conda-forge) are checked;
    if none of them answers, the stand-in channel is used.

    Args:
        requested: from the command line; `stand-in` alone is the stand-in channel.
        configured: the configuration's `channel_sources`.
        ask: returns the reason why a channel cannot be reached; None if it can.

    Raises:
        InputError: `stand-in` is given together with a real channel.
        WorkError: a given channel cannot be reached, or some of the configuration's cannot.
    """
    if STAND_IN.origin in requested:
        return channels_named(requested)
    channels = tuple(requested) or tuple(configured) or DEFAULT_CHANNELS
    reasons = {channel: reason for channel in channels if (reason := _ask(channel, artifacts, ask)) is not None}
    if not reasons:
        return Channels(channels)
    explained = "; ".join(f"{channel}: {reason}" for channel, reason in reasons.items())
    if requested or len(reasons) < len(channels):
        hint = f"Use --channel {STAND_IN.origin} to build on packages made on the spot."
        raise WorkError(f"cannot reach {explained}", hint=hint)
    return _stand_in(f"no channel can be reached ({explained})")


def channels_named(names: Sequence[str]) -> Channels:
    """The channels of these names, without a check whether they can be reached.

    Raises:
        InputError: the stand-in channel is named together with a real one.
    """
    if STAND_IN.origin not in names:
        return Channels(tuple(names))
    if set(names) != {STAND_IN.origin}:
        hint = f"Its packages must not be mixed with real ones: give only --channel {STAND_IN.origin}."
        raise InputError("the stand-in channel cannot be mixed with real channels", hint=hint)
    return _stand_in(f"requested with --channel {STAND_IN.origin}")


def _stand_in(why: str) -> Channels:
    return Channels((STAND_IN.origin,), STAND_IN, why)


def possible_channels(requested: Sequence[str], configured: Sequence[str]) -> Iterator[Channels]:
    """The channels that builds of a configuration may have used, without querying any of them.

    Without channels given, those of the configuration and the stand-in channel both count.

    Args:
        requested: the channels from the command line.
        configured: the configuration's own channels.
    """
    names = tuple(requested) or tuple(configured) or DEFAULT_CHANNELS
    if STAND_IN.origin not in names:
        yield Channels(names)
    if STAND_IN.origin in names or not requested:
        yield _stand_in("listed")


def _ask(channel: str, artifacts: Artifacts, ask: Callable[[str], str | None] | None) -> str | None:
    """Why a channel cannot be reached, from a check within the last minutes; a folder is checked every time."""
    if ask is not None:
        return ask(channel)
    if (folder := local_folder(channel)) is not None:
        return why_no_channel(folder)
    cached = artifacts.recall(_CACHE)
    entries = cached if isinstance(cached, dict) else {}
    name = sha256(channel.encode()).hexdigest()[:16]
    entry = entries.get(name)
    if isinstance(entry, dict) and 0 <= time.time() - entry.get("at", 0) < _BELIEVED:
        reason: str | None = entry.get("reason")
        return reason
    from feedstock_tools.channel.repodata import why_unreachable

    reason = why_unreachable(channel)
    artifacts.remember(_CACHE, {**entries, name: {"at": time.time(), "reason": reason}})
    return reason


@dataclass(frozen=True, slots=True)
class ChannelsIdentity:
    """The channels' part of a build's identity, and that of a shared build.

    A shared build counts the packages that it was built with, whatever else a folder has.
    """

    contents: str
    places: str


class ChannelIdentities:
    """The identities of channels on a machine: for a folder the hash of its repodata, for others the URL.

    The contents of a remote channel change by the hour, which alone is not a reason to build again. The stand-in
    channel counts with the programs behind its packages. Each is computed once.
    """

    def __init__(self, machine: Mapping[str, str]) -> None:
        """Start with the environment of the machine."""
        self._machine = machine
        self._known: dict[tuple[Channels, str, frozenset[str]], ChannelsIdentity] = {}

    def of(self, channels: Channels, platform: str, cudas: Collection[str] = ()) -> ChannelsIdentity:
        """The identity of channels for a subdir and the versions of CUDA that the builds use, or their majors."""
        key = channels, platform, frozenset(cudas)
        if key not in self._known:
            self._known[key] = self._identity(*key)
        return self._known[key]

    def _identity(self, channels: Channels, platform: str, cudas: frozenset[str]) -> ChannelsIdentity:
        if channels.properties.made_here:
            own = f"{channels.properties.origin} {self._made_here(Platform.parse(platform), cudas)}"
            return ChannelsIdentity(own, own)
        return ChannelsIdentity(_digest(map(_contents, channels.names)), _digest(map(_place, channels.names)))

    @cached_property
    def _made_here(self) -> Callable[[Platform, Collection[str]], str]:
        from feedstock_tools.builds.stand_in import channel_identities

        return channel_identities(self._machine)


def _digest(lines: Iterable[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()


def _contents(channel: str) -> str:
    folder = local_folder(channel)
    if folder is None:
        return _place(channel)
    repodata = sorted(folder.glob("*/repodata.json"))
    return " ".join(["folder", *(f"{file.parent.name} {sha256_of(file)}" for file in repodata)])


def _place(channel: str) -> str:
    if local_folder(channel) is not None:
        return "folder"
    return channel if "://" in channel else f"https://conda.anaconda.org/{channel}"


@dataclass(frozen=True)
class OpenChannels:
    """Channels ready for a build on this machine.

    Attributes:
        urls: the first has priority.
        subdirs: the folders of a channel that a build looks into: the platform's, and `noarch`.
        properties: with what this machine has.
    """

    urls: tuple[str, ...]
    subdirs: tuple[str, ...]
    properties: ChannelProperties = REAL

    def has(self, channel: str, name: str) -> bool:
        """Whether a channel (its URL) has any package of a name."""
        if channel not in self._names:
            from feedstock_tools.channel.repodata import read_records

            self._names[channel] = frozenset(record.name for record in read_records(channel, self.subdirs))
        return name in self._names[channel]

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        return {}


def open_channels(
    channels: Channels, platform: str, pythons: Iterable[str], machine: Mapping[str, str], fallback: Path
) -> OpenChannels:
    """Channels for builds for a platform; the stand-in channel is created if it is missing.

    Args:
        platform: the subdir built for.
        pythons: the versions that must run, as far as this machine has them. For solving alone none is needed: on the
            stand-in channel each takes seconds to make.
        fallback: the cache folder if the user has none.
    """
    subdirs = (platform, "noarch")
    if channels.properties.made_here:
        from feedstock_tools.builds.stand_in import open_channel

        opened = open_channel(machine, Platform.parse(platform), pythons, fallback)
        return OpenChannels((opened.url,), subdirs, opened.properties)
    from feedstock_tools.channel.repodata import channel_url

    return OpenChannels(tuple(channel_url(channel) for channel in channels.names), subdirs)


def names_to_solve_in(
    channels: Channels, platforms: Iterable[Platform], machine: Mapping[str, str], fallback: Path
) -> dict[str, tuple[str, ...]]:
    """Subdir → the channels to solve in for that platform: their names, or the URL of one that is made on the spot.

    The arguments and errors are those of `open_channels`.
    """
    return {
        platform.subdir: open_channels(channels, platform.subdir, (), machine, fallback).urls
        if channels.properties.made_here
        else channels.names
        for platform in platforms
    }


def channels_to_rehearse(
    feedstock: Feedstock,
    artifacts: Artifacts,
    configurations: Sequence[Configuration],
    requested: Sequence[str],
    machine: Mapping[str, str],
) -> RehearsalChannels:
    """The channels that builds of some configurations would use, on their platforms and on those that build them.

    Args:
        artifacts: the folder of artifacts, with the cache of channels that answered.
        requested: the channels from the command line; none to use those of the configurations, and the stand-in channel
            if none of these can be reached. Each channel counts once.
        machine: the environment of the machine.
    """
    from feedstock_tools.check.rehearsal import RehearsalChannels, platforms_of
    from feedstock_tools.rerender.forge import read_forge
    from feedstock_tools.rerender.rules import Rules

    listed = [configuration.values.get("channel_sources", ("",))[0].split(",") for configuration in configurations]
    configured = dict.fromkeys(name.strip() for names in listed for name in names if name.strip())
    channels = choose_channels(requested, tuple(configured), artifacts)
    platforms = platforms_of(read_forge(feedstock.folder, Rules.newest()), configurations)
    by_subdir = names_to_solve_in(channels, platforms, machine, artifacts.cache)
    return RehearsalChannels(by_subdir, None if channels.properties.is_complete else channels.why)


def prepare_channels(
    demands: Sequence[ChannelDemand], machine: Mapping[str, str], fallback: Path, watch: Watch
) -> dict[str, str]:
    """Make compilers and tools ready that rows need of channels made on the spot, fetching what is missing.

    Args:
        demands: of all rows of a run.
        fallback: the cache folder if the user has none.

    Returns:
        The configurations that this machine still cannot build: name → reason.
    """
    demands = [demand for demand in demands if demand.channels.properties.made_here]
    if not demands:
        return {}
    from feedstock_tools.builds.stand_in import prepare

    return prepare(demands, machine, fallback, watch)


def foresee_channels(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> dict[str, str]:
    """The configurations that channels made on the spot cannot build, as far as that is known without a network."""
    demands = [demand for demand in demands if demand.channels.properties.made_here]
    if not demands:
        return {}
    from feedstock_tools.builds.stand_in import foresee

    return foresee(demands, machine)


def compiler_notes(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> list[str]:
    """Which compilers channels made on the spot have, and what is known of them before rows are built."""
    demands = [demand for demand in demands if demand.channels.properties.made_here]
    if not demands:
        return []
    from feedstock_tools.builds import stand_in

    return stand_in.compiler_notes(demands, machine)


def note_on_script(
    channels: OpenChannels,
    log: Collection[str],
    required: Collection[str],
    cuda: str | None,
    machine: Mapping[str, str],
) -> str | None:
    """What a build script that failed may have lacked of a compiler on these channels; None if nothing is known.

    Args:
        log: the last lines that it printed.
        required: the names of the packages in its environments.
        cuda: the CUDA version of the row.
    """
    if not channels.properties.made_here:
        return None
    from feedstock_tools.builds import stand_in

    return stand_in.note_on_script(log, required, cuda, machine)


def note_on_empty(channels: OpenChannels, required: Collection[str]) -> str | None:
    """Which required packages have no files on these channels, although they are needed for them; None if none."""
    properties = channels.properties
    empty = sorted(properties.empty.intersection(required))
    if not empty:
        return None
    have = "has" if len(empty) == 1 else "have"
    return f"on the {properties.origin} channel {', '.join(empty)} {have} no files. {properties.remedy}"
