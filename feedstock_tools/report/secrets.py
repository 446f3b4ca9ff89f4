"""What must not get out with a log: passwords and tokens, by their form or since this machine's environment has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from feedstock_tools.build.provenance import redacted

__all__ = ["known_secrets", "secrets_in"]

_NAMES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)
#: A shorter value is no secret worth the name, and would be found everywhere.
_SHORTEST = 8
_FORMS = {
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
}


def known_secrets(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of an environment that hold secrets, by what they are called."""
    return {name: value for name, value in environment.items() if _NAMES.search(name) and len(value) >= _SHORTEST}


def secrets_in(text: str, known: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The line (from 1) and kind of each secret in a text; the secret itself is not told."""
    for number, line in enumerate(text.splitlines(), 1):
        for name, value in known.items():
            if value in line:
                yield number, f"the value of {name}"
        for kind, form in _FORMS.items():
            if form.search(line):
                yield number, kind
        if redacted(line) != line:
            yield number, "a password or token in a URL"
