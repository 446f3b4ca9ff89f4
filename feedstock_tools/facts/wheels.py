"""Which CUDA, cuDNN and Python the wheels of frameworks are for.

The facts are data: `variants/wheels.yaml`, read from the metadata of the wheels, in the form of
`facts.framework_models.WheelsFile`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from feedstock_tools.facts.content import content_of


@dataclass(frozen=True, slots=True)
class WheelRelease:
    """The last release of a minor version of a framework, as its wheels are.

    `python` are minor versions, `platforms` conda's subdirs. `cuda`, `cudnn` and `numpy` are what its metadata asks
    for, as pip writes it (`==12.2.140`, `>=12.5.82,<13.0`); None where it asks for none; then `tested`
    has the CUDA and cuDNN that its makers tested it with, if they say so.
    """

    version: str
    python: tuple[str, ...]
    platforms: tuple[str, ...]
    cuda: str | None
    cudnn: str | None
    numpy: str | None
    tested: tuple[str, str] | None

    @property
    def minor(self) -> str:
        """The minor version: `2.15`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def cuda_spec(self) -> str | None:
        """The minor versions of CUDA that it brings along, as a specification of conda: `12.2.*`, `>=12.5,<13.0`."""
        if self.cuda is None:
            return None
        exact = re.fullmatch(r"==(\d+\.\d+)\..*", self.cuda)
        if exact is not None:
            return f"{exact[1]}.*"
        parts = [re.sub(r"^(>=\d+\.\d+)\..*", r"\1", part) for part in self.cuda.split(",")]
        return ",".join(part.removeprefix("==") for part in parts)

    @property
    def python_spec(self) -> str:
        """The versions of Python as a specification of conda: `>=3.9,<3.12`."""
        major, _, minor = self.python[-1].partition(".")
        return f">={self.python[0]},<{major}.{int(minor) + 1}"


def load_wheels(path: Path | None = None) -> Mapping[str, tuple[WheelRelease, ...]]:
    """The releases of `path` by framework, oldest first; default: those that ship with this package (read once).

    Raises:
        InputError: `path` breaks the form of such a file; all mistakes, each with line and column.
    """
    return _load(path)


@lru_cache(maxsize=4)
def _load(path: Path | None) -> Mapping[str, tuple[WheelRelease, ...]]:
    document = content_of("wheels.yaml", path)
    return MappingProxyType(
        {
            name: tuple(_release(entry, document["tested"].get(name)) for entry in entries)
            for name, entries in document["wheels"].items()
        }
    )


def _release(entry: Mapping[str, Any], by_makers: Mapping[str, Any] | None) -> WheelRelease:
    tested = by_makers["releases"].get(".".join(entry["version"].split(".")[:2])) if by_makers else None
    return WheelRelease(
        entry["version"],
        tuple(entry["python"]),
        tuple(entry["platforms"]),
        entry.get("cuda"),
        entry.get("cudnn"),
        entry.get("numpy"),
        (tested["cuda"], tested["cudnn"]) if tested else None,
    )
