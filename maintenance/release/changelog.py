"""CHANGELOG.md in the format of https://keepachangelog.com: one section a version, the newest first.

A version's section is `## [0.2.0] - 2026-11-22`; what the next version will bring stands below `## [Unreleased]`.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from feedstock_tools.errors import InputError

UNRELEASED = "Unreleased"
FILE = Path("CHANGELOG.md")

_SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?$")


def notes_of(text: str, name: str) -> str:
    """The entries of one section, without its heading.

    Args:
        text: the changelog.
        name: a version such as `0.2.0`, or `Unreleased`.

    Raises:
        InputError: the changelog has no such section, or the section has no entry.

    >>> notes_of("# Changelog\\n\\n## [0.2.0] - 2026-11-22\\n\\n### Fixed\\n\\n- The sky is blue.\\n", "0.2.0")
    '### Fixed\\n\\n- The sky is blue.\\n'
    """
    lines = text.splitlines()
    starts = [(at, match) for at, line in enumerate(lines) if (match := _SECTION.match(line))]
    for (at, match), end in zip(starts, [*(at for at, _ in starts[1:]), len(lines)], strict=True):
        if match["name"] == name:
            body = "\n".join(lines[at + 1 : end]).strip()
            if not any(line.startswith("- ") for line in body.splitlines()):
                raise InputError(f"the section [{name}] has no entry", path=FILE, line=at + 1)
            return body + "\n"
    raise InputError(f"there is no section [{name}]", path=FILE, hint=f"Add a line: ## [{name}]")


def with_release(text: str, version: str, day: date) -> str:
    """The changelog with its unreleased entries below the heading of a version, and an empty `Unreleased` above.

    Raises:
        InputError: nothing is unreleased, or the version has a section already.

    >>> print(with_release("## [Unreleased]\\n\\n### Added\\n\\n- Wings.\\n", "0.2.0", date(2026, 11, 22)))
    ## [Unreleased]
    <BLANKLINE>
    ## [0.2.0] - 2026-11-22
    <BLANKLINE>
    ### Added
    <BLANKLINE>
    - Wings.
    <BLANKLINE>
    """
    notes_of(text, UNRELEASED)
    if any((match := _SECTION.match(line)) and match["name"] == version for line in text.splitlines()):
        raise InputError(f"version {version} has a section already", path=FILE)
    heading = f"## [{UNRELEASED}]\n"
    return text.replace(heading, f"{heading}\n## [{version}] - {day.isoformat()}\n", 1)
