"""Requests of our own to servers: few, short, with the credentials of channels, and none that waits forever.

A channel's URL may contain a user and a password, or a token (`/t/TOKEN/`). Otherwise rattler looks into its own file
(`RATTLER_AUTH_FILE`, else `~/.rattler/credentials.json`), the keychain of the system and `.netrc` (or `NETRC`). These
requests do the same, but for the keychain.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import within

#: Bytes of the largest file with credentials.
_LARGEST_FILE = 1 << 20
_CHUNK = 1 << 16
#: The default limit of an answer in bytes.
_LARGEST = 1 << 30


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without credentials, except for a token in its path, and the header that it needs, if any."""

    url: str
    authorization: str | None


def address_of(url: str) -> Address:
    """The address for a request: with the credentials in the URL, else the stored ones."""
    parts = urlsplit(url)
    bare = parts.netloc.rpartition("@")[2]
    if "@" in parts.netloc:
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        return Address(urlunsplit(parts._replace(netloc=bare)), _basic(unquote(user), unquote(password)))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.startswith("/t/"):
        return Address(url, None)
    stored = _stored(parts.hostname)
    if stored is not None:
        return _with_stored(parts, stored)
    login = _from_netrc(parts.hostname)
    return Address(url, _basic(*login) if login else None)


def _with_stored(parts: SplitResult, stored: Mapping[str, Any]) -> Address:
    """The address with an entry of rattler's file: a user and password, a bearer's token, or one for the path."""
    url = urlunsplit(parts)
    with suppress(KeyError, TypeError):
        if "BasicHTTP" in stored:
            entry = stored["BasicHTTP"]
            return Address(url, _basic(str(entry["username"]), str(entry["password"])))
        if "BearerToken" in stored:
            return Address(url, f"Bearer {stored['BearerToken']}")
        if "CondaToken" in stored:
            token = quote(str(stored["CondaToken"]), safe="")
            return Address(urlunsplit(parts._replace(path=f"/t/{token}{parts.path}")), None)
    return Address(url, None)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _stored(host: str) -> Mapping[str, Any] | None:
    """The entry of rattler's file for a host, or for a domain that it belongs to (`*.example.org`)."""
    named = os.environ.get("RATTLER_AUTH_FILE")
    path = Path(named) if named else _home() / ".rattler" / "credentials.json"
    content = _small_file(path)
    try:
        entries = json.loads(content) if content is not None else {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict):
        return None
    labels = host.split(".")
    names = [host, *(f"*.{'.'.join(labels[at:])}" for at in range(len(labels)))]
    return next((entries[name] for name in names if isinstance(entries.get(name), dict)), None)


def _from_netrc(host: str) -> tuple[str, str] | None:
    from netrc import NetrcParseError, netrc

    path = Path(os.environ.get("NETRC") or _home() / ".netrc")
    if _small_file(path) is None:
        return None
    with suppress(NetrcParseError, OSError, ValueError):
        login = netrc(path).authenticators(host)
        if login is not None:
            return login[0], login[2] or ""
    return None


def _small_file(path: Path) -> bytes | None:
    """The content of a small plain file; None for anything else."""
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= _LARGEST_FILE:
            return path.read_bytes()
    return None


def _home() -> Path:
    with suppress(RuntimeError):
        return Path.home()
    return Path(os.sep)


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
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send a request with the credentials for its URL, and follow redirects, credentials only to the same host.

    Args:
        seconds: the time limit for all of it: finding the host, connecting, and reading the whole answer.
        largest: the limit of the answer in bytes.
        take: gets the answer in parts, which is then not in the reply.
        headers: of the request, beside those with credentials.

    Raises:
        NoAnswerError: the server cannot be reached, does not answer in time, or answers with too much.
    """
    end = time.monotonic() + seconds
    try:
        host = urlsplit(url).hostname
        request = _request(url, method, headers or {})
        return within(seconds, f"{host} to answer", lambda: _asked(request, end, largest, take))
    except TimeoutError:
        raise NoAnswerError(f"no answer within {seconds:g} s") from None
    except (OSError, ValueError, HTTPException) as error:
        raise NoAnswerError(_in_words(getattr(error, "reason", error))) from error


def _in_words(cause: object) -> str:
    """Why there is no answer; the system's own words for a name that is unknown say little."""
    if isinstance(cause, socket.gaierror):
        return "its name cannot be looked up; is there a network?"
    return str(cause) or type(cause).__name__


def _request(url: str, method: str, headers: Mapping[str, str]) -> tuple[urllib.request.Request, str | None]:
    """The request for a URL, and the credentials for its host."""
    address = address_of(url)
    if urlsplit(address.url).scheme not in ("http", "https"):
        raise ValueError("it is not a URL of the web")
    request = urllib.request.Request(address.url, method=method, headers=dict(headers))  # noqa: S310 - checked above
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


AZURE = "https://dev.azure.com"
_LARGEST_ANSWER = 1024 * 1024
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
