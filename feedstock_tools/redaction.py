"""Secrets that must not enter a ledger or a log: passwords and tokens, by their form or from the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["known_secrets", "redacted", "secrets_in"]

_NAMES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)
#: A shorter value is not a real secret, and would be found everywhere.
_SHORTEST = 8
#: Kind → its form. The group `secret` is the secret part; stars are not secret. In a URL it is a user with a
#: password, or, for the web, a single word before the `@`, where tokens are put; in `ssh://git@…` it is a user.
_FORMS = {
    "a token of GitHub": re.compile(r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    "an access key of AWS": re.compile(r"\b(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b"),
    "a password in a URL": re.compile(
        r"\b(?:https?://|[a-z][\w+.-]*://(?=[^/@\s]*:))(?P<secret>(?!(?:[^/@\s:]*:)?\*+@)[^/@\s]+)@"
    ),
    "a token in a URL": re.compile(r"\bhttps?://[^\s/]+(?:/[^\s/]+)*?/t/(?P<secret>(?!\*+/)[^/\s]+)/"),
    "a private key": re.compile(r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----)"),
}


def known_secrets(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of an environment that contain secrets, according to their names."""
    return {name: value for name, value in environment.items() if _NAMES.search(name) and len(value) >= _SHORTEST}


def redacted(text: str) -> str:
    """A text in which secrets of a known form are replaced by stars.

    >>> redacted("https://me:word@example.org/t/ab-12/channel")
    'https://***@example.org/t/***/channel'
    """
    for form in _FORMS.values():
        text = form.sub(_starred, text)
    return text


def _starred(found: re.Match[str]) -> str:
    begin, end = (at - found.start() for at in found.span("secret"))
    return f"{found[0][:begin]}***{found[0][end:]}"


def secrets_in(text: str, known: Mapping[str, str]) -> Mapping[str, int]:
    """The kinds of secrets in a text, each with the first line (from 1) that has one; without the secret itself."""
    found: dict[str, int] = {}
    for number, kind in _secrets(text, known):
        found.setdefault(kind, number)
    return found


def _secrets(text: str, known: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for name, value in known.items():
            if value in line:
                yield number, f"the value of {name}"
        for kind, form in _FORMS.items():
            if form.search(line):
                yield number, kind
