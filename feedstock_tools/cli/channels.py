"""Channels as commands that read them take them: what `build` knows of names, `stand-in` included."""

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
    """The channels as they were given, with the folders of the stand-in channel in the place of `stand-in`.

    It is made for these platforms where it is missing.

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
