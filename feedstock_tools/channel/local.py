"""Channels that are folders of this machine; it imports little, since lists of configurations need it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit


def local_folder(channel: str) -> Path | None:
    """The folder of a channel given as a path or a file URL, else None.

    A path is absolute, or begins with a dot or `~`; anything else is the name of a channel.
    """
    if channel.startswith("file:"):
        from urllib.request import url2pathname

        return Path(url2pathname(urlsplit(channel).path))
    is_path = "://" not in channel and (channel.startswith((".", "~")) or Path(channel).is_absolute())
    return Path(channel).expanduser().resolve() if is_path else None


def why_no_channel(folder: Path) -> str | None:
    """Why a folder is not a channel, in a few words; None if it is one."""
    return None if (folder / "noarch" / "repodata.json").is_file() else "there is no noarch/repodata.json in it"
