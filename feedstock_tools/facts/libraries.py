"""Releases of NVIDIA's libraries on conda-forge, and the CUDA versions that each was built with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from feedstock_tools.platforms import Platform


@dataclass(frozen=True, slots=True)
class GoesWith:
    """The CUDA versions that builds of a library run with, by their run requirements.

    All three are version specifications of conda: `built` for the CUDA version that a build was made with, `versions`
    for the library, `cuda` for the versions it runs with, where `{built}` stands for the former. `commit` is the
    source.
    """

    built: str
    versions: str
    cuda: str
    commit: str


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The oldest GPUs that builds of a library have code for, by compute capability (`7.5`).

    `versions` of the library and `cuda`, the CUDA versions of the builds, are version specifications of conda.
    """

    versions: str
    cuda: str
    capability: str
    source: str


@dataclass(frozen=True, slots=True)
class LibraryRelease:
    """One version as the feedstock built it at a commit; `cuda` has the platforms of each CUDA version.

    A version that was built again for other CUDA versions appears once for each of those builds.
    """

    version: str
    commit: str
    cuda: Mapping[str, tuple[str, ...]]

    def built_for(self, cuda: str, platform: Platform) -> bool:
        """Whether it was built with exactly this CUDA version for a platform."""
        return platform.subdir in self.cuda.get(cuda, ())


@dataclass(frozen=True, slots=True)
class Library:
    """A library with its releases, newest first. The first entry of `goes_with` that matches a build counts."""

    name: str
    repository: str
    goes_with: tuple[GoesWith, ...]
    gpu_code: tuple[GpuCode, ...]
    releases: tuple[LibraryRelease, ...]

    def versions(self, cuda: str, platform: Platform) -> tuple[str, ...]:
        """The versions that were built with a CUDA version for a platform, newest first.

        Most builds run with other toolkits of their CUDA major version too: see `goes_with`.
        """
        built = (release.version for release in self.releases if release.built_for(cuda, platform))
        return tuple(dict.fromkeys(built))


def libraries_of(section: Mapping[str, Any]) -> Mapping[str, Library]:
    """The libraries of the section `libraries` of `variants/cuda.yaml`, by name."""
    return MappingProxyType(
        {
            name: Library(
                name=name,
                repository=entry["repository"],
                goes_with=tuple(_goes_with(bound) for bound in entry["goes_with"]),
                gpu_code=tuple(GpuCode(**code) for code in entry.get("gpu_code", ())),
                releases=tuple(_release(release) for release in entry["releases"]),
            )
            for name, entry in section.items()
        }
    )


def _goes_with(entry: Mapping[str, str]) -> GoesWith:
    return GoesWith(entry["built"], entry.get("versions", "*"), entry["cuda"], entry["commit"])


def _release(entry: Mapping[str, Any]) -> LibraryRelease:
    cuda = {version: tuple(subdirs) for version, subdirs in entry["cuda"].items()}
    return LibraryRelease(entry["version"], entry["commit"], MappingProxyType(cuda))
