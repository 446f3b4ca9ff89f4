"""What the checks of a spec report."""

from __future__ import annotations

from dataclasses import dataclass

from feedstock_tools.yaml_reading.positions import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """An inconsistency at a location of the file."""

    location: Location
    message: str
    hint: str | None = None
