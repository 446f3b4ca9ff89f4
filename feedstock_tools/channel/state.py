"""The state of a channel's repodata, to decide whether a cached answer still holds."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import file_digest, sha256

from feedstock_tools.channel.local import local_folder
from feedstock_tools.channel.repodata import channel_url
from feedstock_tools.channel.web.asking import NoAnswerError, ask

_SECONDS = 10


def repodata_state(channel: str, subdirs: Sequence[str]) -> str | None:
    """A text that changes with the repodata of a channel; None if its server does not report it.

    For a channel on this machine it is a hash over its files, for others the server's headers.
    """
    folder = local_folder(channel)
    state = [channel_url(channel)]
    for subdir in sorted(subdirs):
        if folder is not None:
            path = folder / subdir / "repodata.json"
            if path.is_file():
                with path.open("rb") as stream:
                    state.append(f"{subdir} {file_digest(stream, sha256).hexdigest()}")
        else:
            answer = _state_on_server(f"{channel_url(channel)}/{subdir}/repodata.json")
            if answer is None:
                return None
            state.append(f"{subdir} {answer}")
    return "\n".join(state)


def _state_on_server(url: str) -> str | None:
    """The tag and modification time of a file on a server; '' if there is no such file."""
    try:
        reply = ask(url, seconds=_SECONDS, method="HEAD")
    except NoAnswerError:
        return None
    if reply.status != 200:
        return "" if reply.status == 404 else None
    words = [reply.headers.get("etag"), reply.headers.get("last-modified")]
    return " ".join(word for word in words if word) or None
