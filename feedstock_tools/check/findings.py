"""What a check reports: mistakes, and remarks on what works today but will fail later, or is wasted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: A mistake fails the build or breaks the package for some users; a remark does not yet.
Weight = Literal["mistake", "remark"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake or remark: the configuration, or a file without one; the key, or a place in a file; the message, and
    the source of the violated fact."""

    configuration: str
    key: str
    message: str
    source: str | None = None
    weight: Weight = "mistake"

    def __str__(self) -> str:
        weight = "remark: " if self.weight == "remark" else ""
        source = f" [{self.source}]" if self.source else ""
        return f"{self.configuration}: {self.key}: {weight}{self.message}{source}"
