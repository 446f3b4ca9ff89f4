"""Answers of the web to single questions: the hash of a source, Azure's number of a repository."""

from __future__ import annotations

import json
from hashlib import new
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from feedstock_tools.channel.web.asking import NoAnswerError, ask
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.redaction import without_credentials

#: Bytes and seconds of one source; PyTorch's with all submodules has 0.3 GB.
_LARGEST_SOURCE = 8 << 30
_SOURCE_SECONDS = 3600
_HINT = "Give its hash with --sha256."
AZURE = "https://dev.azure.com"
_LARGEST_ANSWER = 1024 * 1024
#: The first status of HTTP that is not an answer.
_NO_ANSWER = 400


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
        status = ask(url, seconds=_SOURCE_SECONDS, largest=_LARGEST_SOURCE, take=digest.update).status
        reason = "" if status == HTTPStatus.OK else f"the server answers {status}"
    except NoAnswerError as error:
        reason = str(error)
    if reason:
        raise WorkError(f"{without_credentials(url)} cannot be downloaded: {reason}", hint=_HINT)
    return digest.hexdigest()


def build_number(organisation: str, project: str, repository: str, *, server: str = AZURE, seconds: float = 5) -> int:
    """The number of the first build definition of a repository.

    Args:
        seconds: the time limit for finding the host, connecting, and the whole answer.

    Raises:
        WorkError: there is no answer in time, or it names no definition.
    """
    place = f"{quote(organisation, safe='')}/{quote(project, safe='')}"
    url = f"{server}/{place}/_apis/build/definitions?name={quote(repository, safe='')}"
    try:
        reply = ask(url, seconds=seconds, largest=_LARGEST_ANSWER)
        if reply.status >= _NO_ANSWER:
            raise NoAnswerError(f"HTTP status {reply.status}")
        number = json.loads(reply.content)["value"][0]["id"]
    except NoAnswerError as error:
        raise WorkError(f"cannot read {url}: {error}") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise WorkError(f"{url} names no build definition") from error
    if not isinstance(number, int):
        raise WorkError(f"{url} names no build definition")
    return number
