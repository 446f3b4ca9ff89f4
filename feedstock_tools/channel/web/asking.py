"""Requests of our own to the server of a channel: few, short, with credentials, and none that waits forever."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import urlsplit

from feedstock_tools.channel.web.credentials import address_of
from feedstock_tools.files.locks import within

_CHUNK = 1 << 16
#: The default limit of an answer in bytes.
_LARGEST = 1 << 30


class NoAnswerError(Exception):
    """A server does not answer as HTTP wants it, or not in time; the reason in a few words, without credentials.

    `too_much`: it answers with more than the limit.
    """

    too_much = False


class _TooMuchError(NoAnswerError):
    too_much = True


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""


def ask(
    url: str,
    *,
    seconds: float,
    method: str = "GET",
    largest: int = _LARGEST,
    take: Callable[[bytes], Any] | None = None,
    accept: str | None = None,
) -> Reply:
    """Send a request with the credentials for its URL, and follow redirects, credentials only to the same host.

    Args:
        seconds: the time limit for all of it: finding the host, connecting, and reading the whole answer.
        largest: the limit of the answer in bytes.
        take: gets the answer in parts, which is then not in the reply.
        accept: the header `Accept`.

    Raises:
        NoAnswerError: the server cannot be reached, does not answer in time, or answers with too much.
    """
    end = time.monotonic() + seconds
    try:
        host = urlsplit(url).hostname
        return within(seconds, f"{host} to answer", lambda: _asked(_request(url, method, accept), end, largest, take))
    except TimeoutError:
        raise NoAnswerError(f"no answer within {seconds:g} s") from None
    except (OSError, ValueError, HTTPException) as error:
        raise NoAnswerError(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _request(url: str, method: str, accept: str | None) -> tuple[urllib.request.Request, str | None]:
    """The request for a URL, and the credentials for its host."""
    address = address_of(url)
    if urlsplit(address.url).scheme not in ("http", "https"):
        raise ValueError("it is not a URL of the web")
    headers = {"Accept": accept} if accept else {}
    request = urllib.request.Request(address.url, method=method, headers=headers)  # noqa: S310 - checked above
    if address.authorization:
        request.add_unredirected_header("Authorization", address.authorization)
    return request, address.authorization


def _asked(
    asked: tuple[urllib.request.Request, str | None], end: float, largest: int, take: Callable[[bytes], Any] | None
) -> Reply:
    request, authorization = asked
    opener = urllib.request.build_opener(_Redirects(authorization))
    try:
        with opener.open(request, timeout=_left(end)) as answer:
            parts: list[bytes] = []
            put = take or parts.append
            size = 0
            while chunk := answer.read1(_CHUNK):
                _left(end)
                size += len(chunk)
                if size > largest:
                    raise _TooMuchError(f"it answers with more than {largest} bytes")
                put(chunk)
            return Reply(answer.status, _lower(answer.headers), b"".join(parts))
    except urllib.error.HTTPError as error:
        error.close()
        return Reply(error.code, _lower(error.headers))


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects that keep credentials for the same host only."""

    def __init__(self, authorization: str | None) -> None:
        self._authorization = authorization

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
    ) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            following.method = req.get_method()
            old, new = urlsplit(req.full_url), urlsplit(newurl)
            same = (old.scheme, old.netloc) == (new.scheme, new.netloc)
            if same and self._authorization:
                following.add_unredirected_header("Authorization", self._authorization)
        return following
