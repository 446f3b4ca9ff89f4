"""The architecture that a piece of GPU code is compiled for, and the GPUs that run such code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from feedstock_tools.errors import InputError

#: GPUs of systems on a chip, by capability: their machine code and that of others do not run on each other
#: (CUDA Programming Guide, Compute Capabilities; nvcc's documentation, "Application Compatibility").
TEGRA = frozenset({32, 53, 62, 72, 87, 101, 110})


@dataclass(frozen=True, slots=True)
class Architecture:
    """Device code in a build: machine code (`sm_86`) or PTX (`compute_86`); suffix `a` or `f` for special features."""

    number: int
    suffix: str = ""
    ptx: bool = False

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """Read `sm_86`, `compute_90`, `sm_100f`.

        Raises:
            InputError: `text` is not an architecture.
        """
        match = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", text)
        if match is None:
            raise InputError(f"'{text}' is not a GPU architecture", hint="Write sm_86 or compute_86.")
        return cls(int(match[2]), match[3], match[1] == "compute")

    def __str__(self) -> str:
        return f"{'compute' if self.ptx else 'sm'}_{self.number}{self.suffix}"

    @property
    def dotted(self) -> str:
        """`8.6`, `9.0a`."""
        return f"{self.number // 10}.{self.number % 10}{self.suffix}"

    def runs_on(self, capability: int) -> bool:
        """Whether a GPU of a capability runs it.

        Machine code runs on GPUs of the same major capability and the same or a later minor one; PTX on those of the
        same or any later capability; code with suffix `a` only on that one, with `f` on later ones of the family.
        """
        if self.number == capability:
            return True
        if self.suffix == "a" or self.number > capability:
            return False
        if self.ptx and not self.suffix:
            return True
        same_family = self.number // 10 == capability // 10
        return same_family and self.number not in TEGRA and capability not in TEGRA


def parse_architectures(names: Sequence[str]) -> tuple[Architecture, ...]:
    """Read a list of `sm_86` and `compute_86`."""
    return tuple(Architecture.parse(name) for name in names)


@dataclass(frozen=True, slots=True)
class Service:
    """How a GPU runs a build: `native`, `ptx` (compiled by the driver at first start) or `no`, and by which code."""

    how: str
    by: Architecture | None


def service_of(architectures: Sequence[Architecture], capability: int) -> Service:
    """How a GPU of a capability (86) runs a build with these architectures: by the newest code that it can run."""
    taken = [architecture for architecture in architectures if architecture.runs_on(capability)]
    native = [architecture for architecture in taken if not architecture.ptx]
    best = max(native or taken, key=lambda architecture: (architecture.number, architecture.suffix), default=None)
    return Service("no" if best is None else "ptx" if best.ptx else "native", best)
