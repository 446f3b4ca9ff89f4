"""Channels of commands that read them: the same names as for `build`, including `stand-in`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.cli.printing import say
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform

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


@contextmanager
def suggesting_stand_in() -> Iterator[None]:
    """Name the stand-in channel in the error of a channel on a server that cannot be read.

    Raises:
        WorkError: there was one.
    """
    try:
        yield
    except WorkError as error:
        from feedstock_tools.channel.repodata import UnreadChannelError

        if not isinstance(error, UnreadChannelError):
            raise
        hint = f"Use --channel {STAND_IN} to read one that is made on the spot."
        raise WorkError(error.mistakes[0].message, hint=hint) from error
