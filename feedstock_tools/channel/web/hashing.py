"""The hash of a file on the web, such as the sources of a package."""

from __future__ import annotations

from hashlib import new
from http import HTTPStatus
from urllib.parse import urlsplit

from feedstock_tools.channel.web.asking import NoAnswerError, ask
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.redaction import without_credentials

#: Bytes and seconds of one source; PyTorch's with all submodules has 0.3 GB.
_LARGEST = 8 << 30
_SECONDS = 3600
_HINT = "Give its hash with --sha256."


def hash_of(url: str, kind: str) -> str:
    """Download a file without keeping it; gives its `sha256`, `sha1` or `md5` in hexadecimal digits.

    Raises:
        InputError: it is not an address of the web.
        WorkError: the server does not answer with the file.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InputError(f"{without_credentials(url)} is not an address of the web", hint=_HINT)
    digest = new(kind, usedforsecurity=False)
    try:
        status = ask(url, seconds=_SECONDS, largest=_LARGEST, take=digest.update).status
        reason = "" if status == HTTPStatus.OK else f"the server answers {status}"
    except NoAnswerError as error:
        reason = str(error)
    if reason:
        raise WorkError(f"{without_credentials(url)} cannot be downloaded: {reason}", hint=_HINT)
    return digest.hexdigest()
