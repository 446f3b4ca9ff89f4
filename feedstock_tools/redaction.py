"""Secrets that must not enter a ledger or a log: passwords and tokens, by their form or from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)
#: A shorter value is not a real secret, and would be found everywhere.
_SHORTEST = 8
#: Bytes of the longest URL that is recognized at the end of a block.
_LONGEST_URL = 8192
_USER = re.compile(rb"(?P<user>[^/\s?#]{1,4096})@")
_TOKEN = re.compile(rb"[^/\s]{1,4096}(?=[/\s]|$)")
#: PyPI and Debian keep the projects whose names begin with t in `/t/`, where servers of channels expect a token.
_PROJECT = r"(?:(?<=/source)|(?<=/pool/main))/t/[tT{$%]"
_PROJECT_IN_BYTES = re.compile(_PROJECT.encode())
_IN_URL = re.compile(r"^(?P<scheme>https?://)(?:[^/@]*@)?(?P<host>[^/]*)/(?:t/[^/]+/)?")
#: One of these is in every line with a secret of a known form.
_SIGNS_IN_TEXT = ("://", "gh", "AKIA", "ASIA", "PRIVATE KEY")
_SIGNS = (rb"://", rb"gh[pousr]_", rb"github_pat_", rb"A[KS]IA", rb"PRIVATE KEY")
#: Bytes of a file that are read at once.
_PART = 1 << 22
_BLANK = re.compile(rb"\s")
#: Kind → its form. The group `secret` is the secret part; stars are not secret. In a URL it is a user with a
#: password, or, for the web, a single word before the `@`, where tokens are put; in `ssh://git@…` it is a user.
_FORMS = {
    "a token of GitHub": r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})",
    "an access key of AWS": r"\b(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b",
    "a password in a URL": r"\b(?:https?://|[a-z][\w+.-]*://(?=[^/@\s]*:))(?P<secret>(?!(?:[^/@\s:]*:)?\*+@)[^/\s?#]+)@",
    "a token in a URL": rf"\bhttps?://[^\s/]+(?:/[^\s/]+)*?(?!{_PROJECT})/t/(?P<secret>(?!\*+(?:/|\s|$))[^/\s]+)(?=/|\s|$)",
    "a private key": r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----)",
}


@cache
def _forms() -> dict[str, re.Pattern[str]]:
    """Compiled when a text has a sign of one, which few have."""
    return {kind: re.compile(form) for kind, form in _FORMS.items()}


def known_secrets(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of an environment that contain secrets, according to their names."""
    return {name: value for name, value in environment.items() if _NAMES.search(name) and len(value) >= _SHORTEST}


class Redaction:
    """Replaces secrets by stars in the output of a program, which arrives in blocks that may split a secret.

    Secrets are the given values, passwords in URLs and tokens in the paths of URLs (`/t/TOKEN/`). What may be the
    beginning of a secret at the end of a block is held back until the next one.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        from urllib.parse import quote_from_bytes  # most commands redact only messages

        plain = [secret.encode(errors="surrogateescape") for secret in secrets]
        quoted = [quote_from_bytes(value, safe="").encode() for value in plain]
        self._values = sorted({*plain, *quoted}, key=len, reverse=True)
        self._held = b""

    def text(self, text: str) -> str:
        """A whole text without its secrets; independent of the blocks."""
        data = text.encode(errors="surrogatepass")
        return redacted(self._without_secrets(data).decode(errors="replace"))

    def feed(self, block: bytes) -> bytes:
        """As much of the output up to the end of this block as can contain no part of a secret that goes on."""
        data = self._held + block
        end = self._end_of_known(data)
        self._held = data[end:]
        return self._without_secrets(data[:end])

    def flush(self) -> bytes:
        """The rest, after which nothing continues."""
        rest, self._held = self._held, b""
        return self._without_secrets(rest)

    def discard(self) -> int:
        """Forget the bytes held back, since those after them are lost; returns their number."""
        size, self._held = len(self._held), b""
        return size

    def _end_of_known(self, data: bytes) -> int:
        """The number of bytes that a later block cannot make part of a secret, and that split none."""
        end = min((_before_beginning(data, value) for value in self._values), default=len(data))
        if not data.endswith(b"\n"):  # the last word may be a URL that goes on
            end = min(end, max(len(data) - _LONGEST_URL, _end_of_words(data)))
        while True:
            moved = min((_before_straddling(data, value, end) for value in self._values), default=end)
            if moved == end:
                return end
            end = moved

    def _without_secrets(self, data: bytes) -> bytes:
        for value in self._values:
            if value in data:
                data = data.replace(value, b"***")
        if b":" not in data or b"://" not in data:  # a single byte is found many times as fast
            return data
        if b"@" in data:
            data = _without(data, b"://", _password_at)
        return _without(data, b"/t/", _token_at)


def redacted(text: str) -> str:
    """A text in which secrets of a known form are replaced by stars.

    >>> redacted("https://me:word@example.org/t/ab-12/channel")
    'https://***@example.org/t/***/channel'
    """
    if not any(sign in text for sign in _SIGNS_IN_TEXT):
        return text
    for form in _forms().values():
        text = form.sub(_starred, text)
    return text


def command_line(arguments: Sequence[str]) -> str:
    """A command line without secrets."""
    import shlex
    from pathlib import Path

    return redacted(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def _before_beginning(data: bytes, value: bytes) -> int:
    """Where the longest proper beginning of a value starts that ends some data; the data's length without one."""
    at = data.find(value[:1], max(0, len(data) - len(value) + 1))
    while at >= 0:
        if value.startswith(data[at:]):
            return at
        at = data.find(value[:1], at + 1)
    return len(data)


def _before_straddling(data: bytes, value: bytes, end: int) -> int:
    """The start of a value that lies across a place in some data; the place itself without one."""
    at = data.find(value, max(0, end - len(value) + 1), end + len(value) - 1)
    return at if 0 <= at < end else end


def _end_of_words(data: bytes) -> int:
    """The end of the last blank or line feed within the longest URL at the end of some data; 0 without one."""
    begin = max(0, len(data) - _LONGEST_URL)
    return max(data.rfind(blank, begin) for blank in (b" ", b"\n", b"\t")) + 1


def _without(data: bytes, sign: bytes, secret_at: Callable[[bytes, int], tuple[int, int] | None]) -> bytes:
    """Some data without the secrets that `secret_at` finds at the occurrences of a sign."""
    parts, done, at = [], 0, data.find(sign)
    while at >= 0:
        span = secret_at(data, at)
        if span is not None and span[0] >= done:
            parts += [data[done : span[0]], b"***"]
            done = span[1]
        at = data.find(sign, max(at + 1, done))
    return b"".join([*parts, data[done:]]) if parts else data


def _password_at(data: bytes, at: int) -> tuple[int, int] | None:
    """The user and password of a URL whose `://` is at a place; for the web, a single word too."""
    user = _USER.match(data, at + 3)
    if user is None:
        return None
    is_web = data[max(0, at - 5) : at].lower().endswith((b"http", b"https"))
    return user.span("user") if is_web or b":" in user["user"] else None


def _token_at(data: bytes, at: int) -> tuple[int, int] | None:
    """The token after a `/t/` at a place, if a URL contains it."""
    begin = data.rfind(b"://", max(0, at - _LONGEST_URL), at)
    if begin < 0 or _BLANK.search(data, begin, at) or _PROJECT_IN_BYTES.match(data, at):
        return None
    token = _TOKEN.match(data, at + 3)
    return token.span() if token else None


def without_credentials(url: str) -> str:
    """A URL without user, password and token, to compare with another that may hide them.

    >>> without_credentials("https://me:word@example.org/t/ab-12/channel")
    'https://example.org/channel'
    """
    return _IN_URL.sub(lambda match: f"{match['scheme']}{match['host']}/", url, count=1)


def _starred(match: re.Match[str]) -> str:
    begin, end = (at - match.start() for at in match.span("secret"))
    return f"{match[0][:begin]}***{match[0][end:]}"


def secrets_in(text: str, credentials: Mapping[str, str]) -> Mapping[str, int]:
    """The kinds of secrets in a text, each with the first line (from 1) that has one; without the secret itself."""
    kinds: dict[str, int] = {}
    for number, kind in _secrets(text, credentials):
        kinds.setdefault(kind, number)
    return kinds


def secrets_in_file(path: Path, credentials: Mapping[str, str]) -> Mapping[str, int]:
    """The same for a file of any size and encoding, which is read in parts.

    Raises:
        OSError: it cannot be read.
    """
    kinds: dict[str, int] = {}
    values = [value.encode(errors="surrogateescape") for value in credentials.values()]
    signs = re.compile(b"|".join([*_SIGNS, *map(re.escape, values)]))
    with path.open("rb") as stream:
        line, rest = 1, b""
        while block := stream.read(_PART):
            data = rest + block
            end = data.rfind(b"\n") + 1 or max(0, len(data) - _LONGEST_URL)
            for number, text in _lines_with(signs, data):
                for kind in secrets_in(text.decode(errors="surrogateescape"), credentials):
                    kinds.setdefault(kind, line + number)
            line += data.count(b"\n", 0, end)
            rest = data[end:]
    return kinds


def _lines_with(signs: re.Pattern[bytes], data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of some data with one of some signs, each with the number of lines before it."""
    at, number, counted = 0, 0, 0
    while sign := signs.search(data, at):
        begin = max(data.rfind(b"\n", 0, sign.start()) + 1, sign.start() - _LONGEST_URL)
        end = data.find(b"\n", sign.end())
        at = min(end if end >= 0 else len(data), sign.end() + _LONGEST_URL)
        number += data.count(b"\n", counted, begin)
        counted = begin
        yield number, data[begin:at]


def _secrets(text: str, credentials: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for name, value in credentials.items():
        at = text.find(value)
        if at >= 0:
            yield text.count("\n", 0, at) + 1, f"the value of {name}"
    for number, line in enumerate(text.splitlines(), 1):
        for kind, form in _forms().items():
            if form.search(line):
                yield number, kind
