"""What a user wants from the CUDA builds, checked before any file is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from feedstock_tools.enable_gpu.libraries import package_of
from feedstock_tools.errors import InputError
from feedstock_tools.facts import load_cuda

_ARCHITECTURE = re.compile(r"(sm|compute)_\d{2,3}[af]?")
#: A CUDA version that every preset of today has, to check names with.
_RECENT = "12.9"
_PREFERRED = ("gpu", "cpu")
_MEANS = ("build_number", "track_features", "both")
_GUARDS = ("major", "minor", "any", "none")


@dataclass(frozen=True, slots=True)
class GpuWishes:
    """The CUDA builds that a recipe must get.

    `libraries` are names such as `cublas` or `libcublas-dev`; `outputs` those that compile CUDA code, by default all
    that compile something; `platforms` subdirs with CUDA builds, by default all for which conda-forge has CUDA.
    `prefer`, `by` and `guard` mean what they mean in a spec (docs/spec.md). `architectures` is a preset of the facts or
    a list such as `sm_80,sm_90,compute_90`. `configure` are options of the project's build system that turn CUDA on,
    `gpu_files` files of the package, relative to its prefix, that hold GPU code in CUDA builds alone, and `tests`
    commands that CUDA builds run.
    """

    libraries: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    prefer: Literal["gpu", "cpu"] = "gpu"
    by: Literal["build_number", "track_features", "both"] = "build_number"
    guard: Literal["major", "minor", "any", "none"] = "major"
    metapackages: bool = False
    architectures: str = "common"
    configure: tuple[str, ...] = ()
    gpu_files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def check(self) -> None:
        """Check each value by itself.

        Raises:
            InputError: a library, platform, preset or architecture is unknown.
        """
        for name in self.libraries:
            package_of(name, _RECENT)
        known = sorted({row.platform.subdir for row in load_cuda().rows if row.cuda is not None})
        for platform in self.platforms:
            if platform not in known:
                hint = f"Expected one of {', '.join(known)}."
                raise InputError(f"conda-forge has no CUDA for the platform '{platform}'", hint=hint)
        for value, allowed in ((self.prefer, _PREFERRED), (self.by, _MEANS), (self.guard, _GUARDS)):
            if value not in allowed:
                raise InputError(f"'{value}' is not one of {', '.join(allowed)}")
        if self.listed_architectures is None:
            load_cuda().preset(self.architectures, _RECENT)

    @property
    def listed_architectures(self) -> tuple[str, ...] | None:
        """The architectures, if they are listed rather than named by a preset."""
        names = tuple(self.architectures.replace(" ", "").split(","))
        return names if all(_ARCHITECTURE.fullmatch(name) for name in names) else None
