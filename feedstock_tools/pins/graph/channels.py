"""Channels by the names that conda prints: `pkgs/main`, `conda-forge`; and the channels of `defaults`."""

from __future__ import annotations

from urllib.parse import urlsplit

from feedstock_tools.channel.local import local_folder
from feedstock_tools.channel.repodata import channel_url
from feedstock_tools.redaction import without_credentials

#: The channels of `defaults` on Linux (conda/base/constants.py, DEFAULT_CHANNELS_UNIX).
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
#: Hosts that conda omits from a channel's name.
_HOSTS = frozenset({"conda.anaconda.org", "repo.anaconda.com"})


def channel_urls(channel: str) -> tuple[str, ...]:
    """The URLs of a channel given as a name, URL or folder.

    Raises:
        InputError: `channel` has none of these forms.
    """
    if channel == "defaults":
        return _DEFAULTS
    if channel.startswith("pkgs/"):
        return (f"https://repo.anaconda.com/{channel}",)
    return (channel_url(channel),)


def channel_anywhere(channel: str) -> str:
    """A channel in a form that works from any folder: a name or URL unchanged, a folder as its URL."""
    folder = local_folder(channel)
    return channel if folder is None else folder.as_uri()


def channel_title(channel: str) -> str:
    """The name of a channel, for tables: `pkgs/main`, `conda-forge`; for a folder its last part, or two within a
    `pkgs`.

    >>> channel_title("https://repo.anaconda.com/pkgs/main/")
    'pkgs/main'
    """
    if "://" not in channel and local_folder(channel) is None:
        return channel
    url = urlsplit(without_credentials(f"{channel_url(channel)}/"))
    parts = [part for part in url.path.split("/") if part]
    if url.scheme == "file":
        return "/".join(parts[-2:] if parts[-2:-1] == ["pkgs"] else parts[-1:]) or channel
    path = "/".join(parts)
    return path if url.hostname in _HOSTS else f"{url.hostname}/{path}"
