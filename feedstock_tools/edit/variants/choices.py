"""The keys whose versions a feedstock chooses: CUDA and Python."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A key whose values are versions: its name in variant files, and in messages."""

    key: str
    title: str


CUDA = Choice("cuda_compiler_version", "CUDA")
PYTHON = Choice("python", "Python")


def older_than(version: str, versions: Iterable[str]) -> list[str]:
    """The versions that are older than a given one."""
    return [other for other in versions if _order(other) < _order(version)]


def newest(versions: Iterable[str]) -> str | None:
    """The newest of some versions; None if there are none."""
    return max(versions, key=_order, default=None)


def _order(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
