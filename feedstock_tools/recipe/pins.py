"""Pins on packages that are known only when environments are solved: `pin_compatible` and `pin_subpackage`.

(conda_build/utils.py: apply_pin_expressions; rattler_build_types/src/pin.rs.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_EXPRESSION = re.compile(r"x(\.x)*$")
_PART = re.compile(r"(\d+|[a-z]+|[^\da-z]+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A requirement that follows the version of a package.

    `compatible` is a pin on the package as it is in the host environment, otherwise on an output of the same recipe.
    `lower` and `upper` are expressions (`x.x`), versions, or None for no bound; `exact` requires that very build.
    """

    name: str
    compatible: bool
    lower: str | None = "x.x.x.x.x.x"
    upper: str | None = "x"
    exact: bool = False

    def applied(self, version: str, build: str) -> str:
        """The requirement for a package of this version and build.

        >>> Pin("numpy", True, upper="x.x").applied("1.21.6", "py39_0")
        'numpy >=1.21.6,<1.22.0a0'
        >>> Pin("libfoo", False, exact=True).applied("1.0", "h1234567_0")
        'libfoo ==1.0 h1234567_0'
        """
        if self.exact:
            return f"{self.name} =={version} {build}"
        bounds = []
        if self.lower:
            bounds.append(f">={_first(version, self.lower)}")
        if self.upper:
            bounds.append(f"<{_next(version, self.upper)}")
        return f"{self.name} {','.join(bounds)}" if bounds else self.name


#: A requirement as text, or one that is completed after solving.
Requirement = str | Pin


def requirement_of_text(text: str) -> Requirement:
    """Parse a requirement of a `meta.yaml` rendered with `keep_pins`.

    >>> requirement_of_text("numpy @compatible;max_pin=x.x")
    Pin(name='numpy', compatible=True, lower='x.x.x.x.x.x', upper='x.x', exact=False)
    """
    name, mark, rest = text.partition(" @")
    if not mark:
        return text.strip()
    kind, *parts = rest.split(" ")[0].split(";")
    bounds = dict(part.split("=", 1) for part in parts if "=" in part)
    return Pin(
        name=name.strip().lower(),
        compatible=kind == "compatible",
        lower=_bound(bounds, "lower_bound") or _bound(bounds, "min_pin", "x.x.x.x.x.x"),
        upper=_bound(bounds, "upper_bound") or _bound(bounds, "max_pin", "x"),
        exact=bounds.get("exact") == "True",
    )


def pin_of_mapping(item: Mapping[str, Any]) -> Pin:
    """A pin as rattler-build writes it in a rendered recipe: `{pin_subpackage: {name: …, exact: …}}`."""
    kind, pin = next(iter(item.items()))
    return Pin(
        name=str(pin["name"]),
        compatible=kind == "pin_compatible",
        lower=pin.get("lower_bound"),
        upper=pin.get("upper_bound"),
        exact=bool(pin.get("exact")),
    )


def _bound(bounds: Mapping[str, str], name: str, default: str | None = None) -> str | None:
    value = bounds.get(name, default)
    return None if value in ("None", "") else value


def _first(version: str, bound: str) -> str:
    """The first parts of a version, as many as the expression has; a bound that is a version is returned unchanged."""
    if not _EXPRESSION.match(bound):
        return bound
    return ".".join(version.split(".")[: bound.count("x")])


def _next(version: str, bound: str) -> str:
    """The first version after all those that agree in as many parts as the expression has."""
    if not _EXPRESSION.match(bound):
        return bound
    parts = version.split("+")[0].split(".")[: bound.count("x")]
    pieces = _PART.findall(parts[-1])
    numbers = [place for place, piece in enumerate(pieces) if piece.isdigit()]
    if not numbers:
        return ".".join((*parts[:-1], f"{parts[-1]}a"))
    grown = "".join(pieces[: numbers[0]]) + str(int(pieces[numbers[0]]) + 1)
    return ".".join((*parts[:-1], grown, "0a0"))
