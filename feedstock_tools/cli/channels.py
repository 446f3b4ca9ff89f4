"""Channels of commands that read them: the same names as for `build`, including `stand-in`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.cli.printing import say
from feedstock_tools.platforms import Platform

__all__ = ["readable"]

_NOTE = "Reading the STAND-IN channel: its packages have the metadata of real ones and no real contents."


def readable(channels: Sequence[str], platforms: Iterable[Platform]) -> tuple[str, ...]:
    """The given channels, with the folders of the stand-in channel in place of `stand-in`.

    Creates the stand-in channel for these platforms if it is missing.

    Raises:
        InputError: `stand-in` is given beside a real channel.
        WorkError: the stand-in channel cannot be written.
    """
    if STAND_IN not in channels:
        return tuple(channels)
    from feedstock_tools.builds.stand_in.channel import stand_in_channel_of
    from feedstock_tools.builds.stand_in.choice import refuse_mixed

    refuse_mixed(channels)
    say(_NOTE, err=True)
    fallback = Path(tempfile.gettempdir(), "feedstock-tools")
    return tuple(stand_in_channel_of(os.environ, platform, (), fallback).url for platform in platforms)
