"""CHANGELOG.md in the format of https://keepachangelog.com: one section a version, the newest first.

A version's section is `## [0.2.0] - 2026-11-22`; what the next version will bring stands below `## [Unreleased]`. Each
section groups its entries below the headings in `KINDS`.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from feedstock_tools.errors import InputError, Mistake

UNRELEASED = "Unreleased"
#: The headings that group the entries of a section.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
FILE = Path("CHANGELOG.md")

_SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?$")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


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


def mistakes(text: str) -> list[Mistake]:
    """The places where a changelog departs from the form; empty if there are none.

    Checked: the title, an `Unreleased` section above all others, versions in falling order with a date each, and that
    every entry is below one of the headings in `KINDS`, each of which a section has once.
    """
    found: list[Mistake] = []
    versions: list[tuple[int, ...]] = []
    kind: str | None = None
    kinds: set[str] = set()
    lines = text.splitlines()
    if not lines or lines[0] != "# Changelog":
        found.append(Mistake("the first line must be '# Changelog'", path=FILE, line=1))
    names = [line for line in lines if line.startswith("## ")]
    if not names or names[0] != f"## [{UNRELEASED}]":
        found.append(Mistake(f"the first section must be '## [{UNRELEASED}]'", path=FILE))
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            kind, kinds = None, set()
            message = _heading_mistake(line, versions)
        elif line.startswith("### "):
            kind = line.removeprefix("### ")
            message = _kind_mistake(kind, kinds)
        else:
            message = "an entry must stand below a heading such as '### Added'" if line[:2] == "- " and not kind else ""
        if message:
            found.append(Mistake(message, path=FILE, line=number))
    return found


def _kind_mistake(kind: str, kinds: set[str]) -> str:
    """The problem of a heading that groups entries; adds it to `kinds`, those of the section so far."""
    if kind not in KINDS:
        return f"the heading must be one of {', '.join(KINDS)}"
    twice = kind in kinds
    kinds.add(kind)
    return f"the section has the heading '### {kind}' twice" if twice else ""


def _heading_mistake(line: str, versions: list[tuple[int, ...]]) -> str:
    """The problems of a section's heading; adds its version to `versions`, those of the sections above."""
    match = _SECTION.match(line)
    if not match:
        return "the heading must have the form '## [0.2.0] - 2026-11-22'"
    if match["name"] == UNRELEASED:
        return "" if not match["date"] and not versions else f"[{UNRELEASED}] has no date and stands first"
    if not _VERSION.fullmatch(match["name"]):
        return f"'{match['name']}' is not a version such as 0.2.0"
    if not match["date"] or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", match["date"]):
        return "a version needs the date of its release, as in '## [0.2.0] - 2026-11-22'"
    version = tuple(int(part) for part in match["name"].split("."))
    older = not versions or version < versions[-1]
    versions.append(version)
    return "" if older else "versions must stand in falling order"
