"""The order of versions as conda has it, so that nothing needs a solver to compare two; and names of PyPI's projects.

(conda/models/version.py, VersionOrder: epoch, dotted parts, strings below numbers, `dev` lowest and `post` highest.)
py-rattler's `Version` orders what both take for a version in the same way, but for a `_` after a letter at the end:
conda sorts `1a_` above `1a`, rattler below. Only conda accepts a `*`; rattler alone a `_` at the end of a local part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from itertools import zip_longest

from feedstock_tools.errors import InputError

_VALID = re.compile(r"^[*.+!_0-9a-z]+$")
_PART = re.compile(r"[0-9]+|[*]+|[^0-9*]+")
_LONGEST = 300

#: A part of a component: texts (rank 0) sort below numbers (1), and `post` (2) above both.
Part = tuple[int, int, str]
_ZERO: Part = (1, 0, "")


class InvalidVersionError(InputError, ValueError):
    """A text that conda does not accept as a version."""


@total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """A parsed version; short ones are padded with zeros for comparison, so that 1 equals 1.0.

    Attributes:
        numbers: of a version that is numbers and dots alone, without zeros at its end; None for any other.
    """

    epoch: int
    components: tuple[tuple[Part, ...], ...]
    local: tuple[tuple[Part, ...], ...]
    numbers: tuple[int, ...] | None

    @property
    def major(self) -> int:
        """The first number: 12 of `12.9`, 0 of a version that begins with a letter."""
        return self.components[0][0][1]

    def _against(self, other: Version) -> int:
        if self.epoch != other.epoch:
            return -1 if self.epoch < other.epoch else 1
        for mine, theirs in ((self.components, other.components), (self.local, other.local)):
            for left, right in zip_longest(mine, theirs, fillvalue=()):
                for first, second in zip_longest(left, right, fillvalue=_ZERO):
                    if first != second:
                        return -1 if first < second else 1
        return 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return False
        if self.numbers is not None and other.numbers is not None:
            return self.numbers == other.numbers
        return self._against(other) == 0

    def __lt__(self, other: Version) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if self.numbers is not None and other.numbers is not None:
            return self.numbers < other.numbers
        return self._against(other) < 0

    def __ge__(self, other: Version) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if self.numbers is not None and other.numbers is not None:
            return self.numbers >= other.numbers
        return self._against(other) >= 0

    __hash__ = None  # type: ignore[assignment]  # equal versions can be written in many ways


def _part(text: str) -> Part:
    if text.isdigit():
        return (1, int(text), "")
    if text == "post":
        return (2, 0, "")
    return (0, 0, "DEV" if text == "dev" else text)


def _numbers(components: tuple[tuple[Part, ...], ...]) -> tuple[int, ...] | None:
    numbers = [parts[0][1] for parts in components if len(parts) == 1 and parts[0][0] == 1]
    if len(numbers) < len(components):
        return None
    while numbers and numbers[-1] == 0:
        del numbers[-1]
    return tuple(numbers)


def _components(text: str) -> tuple[tuple[Part, ...], ...]:
    components = []
    for item in text.split("."):
        parts = tuple(_part(part) for part in _PART.findall(item))
        if not parts:
            raise ValueError("a component is empty")
        components.append(parts if item[0].isdigit() else (_ZERO, *parts))
    return tuple(components)


def minor_of(version: str) -> str:
    """`3.12` of `3.12.1`, and `0.0.35` of `0.0.35.1`, since projects that stay at 0.0 count there."""
    return ".".join(version.split(".")[: 3 if version.startswith("0.0.") else 2])


@lru_cache(maxsize=4096)
def parse_version(version: str) -> Version:
    """Read a version.

    Raises:
        InvalidVersionError: conda would not accept it.

    >>> parse_version("1.10") > parse_version("1.9"), parse_version("2.0rc1") < parse_version("2.0")
    (True, True)
    """
    text = version.strip().lower()
    if "-" in text and "_" not in text:
        text = text.replace("-", "_")
    if len(text) > _LONGEST or not _VALID.match(text):
        raise InvalidVersionError(f"'{version[:80]}' is not a version")
    epoch, bang, rest = text.rpartition("!")
    main, plus, local = rest.partition("+")
    if (bang and not epoch.isdigit()) or "+" in local or not main:
        raise InvalidVersionError(f"'{version[:80]}' is not a version")
    main = main[:-1].replace("_", ".") + "_" if main.endswith("_") else main.replace("_", ".")
    try:
        components = _components(main)
        others = _components(local.replace("_", ".")) if plus else ()
    except ValueError as error:
        raise InvalidVersionError(f"'{version[:80]}' is not a version: {error}") from error
    plain = not others and not int(epoch or 0)
    return Version(int(epoch or 0), components, others, _numbers(components) if plain else None)


def normalized(project: str) -> str:
    """The name by which an index of Python packages knows a project (PEP 503)."""
    return re.sub(r"[-_.]+", "-", project).lower()
