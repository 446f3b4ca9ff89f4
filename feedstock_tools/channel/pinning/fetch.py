"""Fetching conda-forge's pinning from a channel into the user's cache."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.channel.kept.fetch import available_packages, fetch_package
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.pinning.local import PINNING, PINNING_FILE, Pinning

_SECONDS = 120


def fetch_pinning(channel: str, cache: Path, version: str | None = None, *, seconds: float = _SECONDS) -> Pinning:
    """Fetch a version of the package conda-forge-pinning, unless it is already in the cache.

    Args:
        channel: a name such as `conda-forge`, a URL, or a folder.
        cache: the folder returned by `pinning_cache`.
        version: such as `2021.10.29.07.34.22`; default: the newest, which is always looked up in the channel.
        seconds: the time limit for each of the two transfers.

    Raises:
        InputError: `version` is not a version, or the channel does not have it.
        WorkError: the channel cannot be reached, or the package is damaged or would write outside its folder.
    """
    kept = fetch_package(PINNING, channel, cache, version, seconds=seconds)
    return Pinning(kept.folder / PINNING_FILE, kept.version, kept.channel, kept.sha256)


def available_pinnings(channel: str, *, seconds: float = _SECONDS) -> tuple[Record, ...]:
    """The packages of the pinning that a channel has, the newest last.

    Raises:
        WorkError: the channel cannot be reached, answers with an error, or its repodata is damaged.
    """
    return available_packages(PINNING, channel, seconds=seconds)
