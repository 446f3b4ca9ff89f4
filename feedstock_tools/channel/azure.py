"""The number under which Azure builds a repository, looked up in the network."""

from __future__ import annotations

import json
import time
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from feedstock_tools.errors import WorkError

__all__ = ["AZURE", "build_number"]

AZURE = "https://dev.azure.com"
_LARGEST = 1024 * 1024
_PART = 16 * 1024


def build_number(organisation: str, project: str, repository: str, *, server: str = AZURE, seconds: float = 5) -> int:
    """The number of the first build definition of a repository.

    Args:
        seconds: the time limit for the whole answer.

    Raises:
        WorkError: there is no answer in time, or it names no definition.
    """
    place = f"{quote(organisation, safe='')}/{quote(project, safe='')}"
    url = f"{server}/{place}/_apis/build/definitions?name={quote(repository, safe='')}"
    try:
        number = json.loads(_read(url, time.monotonic() + seconds, seconds))["value"][0]["id"]
    except (URLError, OSError) as error:
        raise WorkError(f"cannot read {url}: {getattr(error, 'reason', None) or error}") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise WorkError(f"{url} names no build definition") from error
    if not isinstance(number, int):
        raise WorkError(f"{url} names no build definition")
    return number


def _read(url: str, end: float, seconds: float) -> bytes:
    content = b""
    with urlopen(url, timeout=seconds) as answer:  # noqa: S310 - the scheme is ours
        while part := answer.read1(_PART):
            content += part
            if len(content) > _LARGEST or time.monotonic() > end:
                raise TimeoutError(f"no whole answer within {seconds:g} s")
    return content
