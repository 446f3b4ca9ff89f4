"""Access to channels that want a user, a password or a token: from the places where conda's tools keep them.

A channel's URL may contain a user and a password, or a token (`/t/TOKEN/`). Otherwise rattler looks into its own file
(`RATTLER_AUTH_FILE`, else `~/.rattler/credentials.json`), the keychain of the system and `.netrc` (or `NETRC`). Our own
few requests do the same, but for the keychain.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from rattler.networking import Client

_RETRIES = 2
#: The time limit of one request by rattler, its answer included, in seconds: repodata of 100 MB at 350 KB/s.
_REQUEST_SECONDS = 300
#: Bytes of the largest file with credentials.
_LARGEST = 1 << 20


def rattler_client() -> Client:
    """The client of rattler for all requests to channels, with stored credentials and a time limit for each request."""
    return _client(_RETRIES, _REQUEST_SECONDS)


@cache
def _client(retries: int, seconds: int) -> Client:
    from rattler.networking import Client

    return Client.default_client(retries, timeout=seconds)


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
        if path.is_file() and path.stat().st_size <= _LARGEST:
            return path.read_bytes()
    return None


def _home() -> Path:
    with suppress(RuntimeError):
        return Path.home()
    return Path(os.sep)
