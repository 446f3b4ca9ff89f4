"""The order of versions as conda has it, for merging pins; small, so that reading variants needs no solver.

(conda/models/version.py, VersionOrder: epoch, dotted parts, texts below numbers, `dev` lowest and `post` highest.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from itertools import zip_longest

__all__ = ["Version", "parse_version"]

_VALID = re.compile(r"^[*.+!_0-9a-z]+$")
_PART = re.compile(r"[0-9]+|[*]+|[^0-9*]+")
_LONGEST = 300

#: A part of a component: texts (rank 0) sort below numbers (1), and `post` (2) above both.
Part = tuple[int, int, str]
_ZERO: Part = (1, 0, "")


@total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """A parsed version; short ones are filled with zeros to compare, so that 1 equals 1.0."""

    epoch: int
    components: tuple[tuple[Part, ...], ...]
    local: tuple[tuple[Part, ...], ...]

    def _against(self, other: Version) -> int:
        if self.epoch != other.epoch:
            return -1 if self.epoch < other.epoch else 1
        for mine, theirs in ((self.components, other.components), (self.local, other.local)):
            for left, right in zip_longest(mine, theirs, fillvalue=()):
                for one, two in zip_longest(left, right, fillvalue=_ZERO):
                    if one != two:
                        return -1 if one < two else 1
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._against(other) == 0

    def __lt__(self, other: Version) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._against(other) < 0

    __hash__ = None  # type: ignore[assignment]  # equal versions can be written in many ways


def _part(text: str) -> Part:
    if text.isdigit():
        return (1, int(text), "")
    if text == "post":
        return (2, 0, "")
    return (0, 0, "DEV" if text == "dev" else text)


def _components(text: str) -> tuple[tuple[Part, ...], ...]:
    components = []
    for item in text.split("."):
        parts = tuple(_part(part) for part in _PART.findall(item))
        if not parts:
            raise ValueError("a component is empty")
        components.append(parts if item[0].isdigit() else (_ZERO, *parts))
    return tuple(components)


@lru_cache(maxsize=4096)
def parse_version(version: str) -> Version:
    """Read a version.

    Raises:
        ValueError: conda would not take this for a version.

    >>> parse_version("1.10") > parse_version("1.9"), parse_version("2.0rc1") < parse_version("2.0")
    (True, True)
    """
    text = version.strip().lower()
    if "-" in text and "_" not in text:
        text = text.replace("-", "_")
    if len(text) > _LONGEST or not _VALID.match(text):
        raise ValueError(f"'{version[:80]}' is not a version")
    epoch, bang, rest = text.rpartition("!")
    main, plus, local = rest.partition("+")
    if (bang and not epoch.isdigit()) or "+" in local or not main:
        raise ValueError(f"'{version[:80]}' is not a version")
    main = main[:-1].replace("_", ".") + "_" if main.endswith("_") else main.replace("_", ".")
    try:
        return Version(int(epoch or 0), _components(main), _components(local.replace("_", ".")) if plus else ())
    except ValueError as error:
        raise ValueError(f"'{version[:80]}' is not a version: {error}") from error
