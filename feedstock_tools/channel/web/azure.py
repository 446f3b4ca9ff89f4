"""The number under which Azure builds a repository, looked up in the network."""

from __future__ import annotations

import json
from urllib.parse import quote

from feedstock_tools.channel.web.asking import NoAnswerError, ask
from feedstock_tools.errors import WorkError

AZURE = "https://dev.azure.com"
_LARGEST = 1024 * 1024
#: The first status of HTTP that is not an answer.
_NO_ANSWER = 400


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
        reply = ask(url, seconds=seconds, largest=_LARGEST)
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
