"""Which channels a build solves in: those given, the configuration's, or the stand-in channel where none answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from feedstock_tools.channel.local import local_folder, why_no_channel
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts

__all__ = ["DEFAULT_CHANNELS", "STAND_IN", "ChannelChoice", "choose_channels", "refuse_mixed"]

#: What a build uses where neither its configuration nor the command line names a channel.
DEFAULT_CHANNELS = ("conda-forge",)
#: The name of the stand-in channel, on the command line too, and of the key in info/about.json that marks its packages.
STAND_IN = "stand-in"
#: How long an answer to "does this channel answer?" is believed, in seconds.
_BELIEVED = 600
_CACHE = "channels-asked"


@dataclass(frozen=True, slots=True)
class ChannelChoice:
    """The channels of a build, as names or URLs. `why_stand_in` is the reason where it is the stand-in channel."""

    channels: tuple[str, ...]
    why_stand_in: str | None = None

    @property
    def is_stand_in(self) -> bool:
        """Whether the stand-in channel serves instead of real ones."""
        return self.why_stand_in is not None


def choose_channels(
    given: Sequence[str],
    configured: Sequence[str],
    artifacts: Artifacts,
    ask: Callable[[str], str | None] | None = None,
) -> ChannelChoice:
    """Decide on the channels.

    Channels that were given are used or the build fails. Those of the configuration (default: conda-forge) are asked;
    where none of them answers, the stand-in channel serves.

    Args:
        given: from the command line; `stand-in` alone is the stand-in channel.
        configured: the configuration's `channel_sources`.
        ask: gives the reason why a channel cannot be reached; None where it can.

    Raises:
        InputError: `stand-in` is given beside a real channel.
        WorkError: a channel that was given cannot be reached, or some of the configuration's cannot.
    """
    if STAND_IN in given:
        refuse_mixed(given)
        return ChannelChoice((STAND_IN,), "asked for with --channel stand-in")
    channels = tuple(given) or tuple(configured) or DEFAULT_CHANNELS
    reasons = {channel: reason for channel in channels if (reason := _ask(channel, artifacts, ask)) is not None}
    if not reasons:
        return ChannelChoice(channels)
    explained = "; ".join(f"{channel}: {reason}" for channel, reason in reasons.items())
    if given or len(reasons) < len(channels):
        hint = f"Where no channel can be reached, --channel {STAND_IN} builds on packages made on the spot."
        raise WorkError(f"cannot reach {explained}", hint=hint)
    return ChannelChoice((STAND_IN,), f"no channel can be reached ({explained})")


def refuse_mixed(given: Sequence[str]) -> None:
    """Refuse the stand-in channel beside real channels.

    Raises:
        InputError: it is among several channels.
    """
    if STAND_IN in given and set(given) != {STAND_IN}:
        hint = f"Packages built on it must not meet real ones: give --channel {STAND_IN} alone."
        raise InputError("the stand-in channel cannot be mixed with real channels", hint=hint)


def _ask(channel: str, artifacts: Artifacts, ask: Callable[[str], str | None] | None) -> str | None:
    """Why a channel cannot be reached, as found within the last minutes; a folder is looked at every time."""
    if ask is not None:
        return ask(channel)
    if (folder := local_folder(channel)) is not None:
        return why_no_channel(folder)
    asked = artifacts.recall(_CACHE)
    known = asked if isinstance(asked, dict) else {}
    name = sha256(channel.encode()).hexdigest()[:16]
    entry = known.get(name)
    if isinstance(entry, dict) and 0 <= time.time() - entry.get("at", 0) < _BELIEVED:
        reason: str | None = entry.get("reason")
        return reason
    from feedstock_tools.channel.repodata import why_unreachable

    reason = why_unreachable(channel)
    artifacts.remember(_CACHE, {**known, name: {"at": time.time(), "reason": reason}})
    return reason
