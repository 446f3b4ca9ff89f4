"""What must not get out with a log: passwords and tokens, by their form or as this machine's environment has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["known_secrets", "secrets_in"]

_NAMES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)
#: A shorter value is no secret worth the name, and would be found everywhere.
_SHORTEST = 8
_FORMS = {
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a password in a URL": re.compile(r"\bhttps?://[^/@\s:]+:(?!\*+@)[^/@\s]+@"),
    "a token in a URL": re.compile(r"\bhttps?://[^\s/]+(?:/[^\s/]+)*?/t/(?!\*+/)[^/\s]+/"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
}


def known_secrets(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of an environment that hold secrets, by what they are called."""
    return {name: value for name, value in environment.items() if _NAMES.search(name) and len(value) >= _SHORTEST}


def secrets_in(text: str, known: Mapping[str, str]) -> Mapping[str, int]:
    """The kinds of secrets in a text, each with the first line (from 1) that has one; the secret itself is not told."""
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
