"""Which channels a build solves in: the given ones, the configuration's, or the stand-in channel if none answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from feedstock_tools.channel.local import local_folder, why_no_channel
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts

#: The channel of a build if neither its configuration nor the command line names one.
DEFAULT_CHANNELS = ("conda-forge",)
#: The name of the stand-in channel, on the command line too, and of the key in info/about.json that marks its packages.
STAND_IN = "stand-in"
#: How long the result of a channel check is cached, in seconds.
_BELIEVED = 600
_CACHE = "channels-asked"


@dataclass(frozen=True, slots=True)
class ChannelChoice:
    """The channels of a build, as names or URLs. `why_stand_in` is the reason for the stand-in channel, if used."""

    channels: tuple[str, ...]
    why_stand_in: str | None = None

    @property
    def is_stand_in(self) -> bool:
        """Whether the stand-in channel is used instead of real ones."""
        return self.why_stand_in is not None


def choose_channels(
    requested: Sequence[str],
    configured: Sequence[str],
    artifacts: Artifacts,
    ask: Callable[[str], str | None] | None = None,
) -> ChannelChoice:
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
    if STAND_IN in requested:
        refuse_mixed(requested)
        return ChannelChoice((STAND_IN,), "requested with --channel stand-in")
    channels = tuple(requested) or tuple(configured) or DEFAULT_CHANNELS
    reasons = {channel: reason for channel in channels if (reason := _ask(channel, artifacts, ask)) is not None}
    if not reasons:
        return ChannelChoice(channels)
    explained = "; ".join(f"{channel}: {reason}" for channel, reason in reasons.items())
    if requested or len(reasons) < len(channels):
        hint = f"Use --channel {STAND_IN} to build on packages made on the spot."
        raise WorkError(f"cannot reach {explained}", hint=hint)
    return ChannelChoice((STAND_IN,), f"no channel can be reached ({explained})")


def refuse_mixed(requested: Sequence[str]) -> None:
    """Refuse the stand-in channel together with real channels.

    Raises:
        InputError: it is among several channels.
    """
    if STAND_IN in requested and set(requested) != {STAND_IN}:
        hint = f"Its packages must not be mixed with real ones: give only --channel {STAND_IN}."
        raise InputError("the stand-in channel cannot be mixed with real channels", hint=hint)


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
