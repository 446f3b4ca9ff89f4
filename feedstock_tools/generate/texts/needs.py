"""One requirement of a recipe, before a format spells it."""

from __future__ import annotations

from dataclasses import dataclass

from feedstock_tools.conditions.tree import Condition, Name

CUDA = Name("cuda")
CPU = Name("cpu")


@dataclass(frozen=True, slots=True)
class Need:
    """One requirement: a kind of `REQUIREMENT_KINDS` except `use`, its value, and its condition."""

    kind: str
    value: str
    condition: Condition | None = None
    why: str | None = None
    exact: bool = True
    lower: str | None = None
    upper: str | None = None

    @property
    def package(self) -> str:
        """The name of the package, as far as it is known without variants."""
        return self.value.split(" ", 1)[0] if self.kind in ("package", "cdt", "pin", "compatible") else ""
