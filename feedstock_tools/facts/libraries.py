"""Releases of NVIDIA's libraries on conda-forge, and the CUDA versions that each was built with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from feedstock_tools.platforms import Platform

__all__ = ["Library", "LibraryRelease", "libraries_of"]


@dataclass(frozen=True, slots=True)
class LibraryRelease:
    """One version as the feedstock built it at a commit; `cuda` has the platforms of each CUDA version.

    A version that was built again for other CUDA versions is there once for each of those builds.
    """

    version: str
    commit: str
    cuda: Mapping[str, tuple[str, ...]]

    def built_for(self, cuda: str, platform: Platform) -> bool:
        """Whether it was built with just this CUDA version for a platform."""
        return platform.subdir in self.cuda.get(cuda, ())


@dataclass(frozen=True, slots=True)
class Library:
    """A library with its releases, newest first."""

    name: str
    repository: str
    releases: tuple[LibraryRelease, ...]

    def versions(self, cuda: str, platform: Platform) -> tuple[str, ...]:
        """The versions that were built with a CUDA version for a platform, newest first.

        What a build runs with beside is for its dependencies to say: most serve the later toolkits of their CUDA major
        version too.
        """
        built = (release.version for release in self.releases if release.built_for(cuda, platform))
        return tuple(dict.fromkeys(built))


def libraries_of(section: Mapping[str, Any]) -> Mapping[str, Library]:
    """The libraries of the section `libraries` of `variants/cuda.yaml`, by name."""
    return MappingProxyType(
        {
            name: Library(name, entry["repository"], tuple(_release(release) for release in entry["releases"]))
            for name, entry in section.items()
        }
    )


def _release(entry: Mapping[str, Any]) -> LibraryRelease:
    cuda = {version: tuple(subdirs) for version, subdirs in entry["cuda"].items()}
    return LibraryRelease(entry["version"], entry["commit"], MappingProxyType(cuda))
