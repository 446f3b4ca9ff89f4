"""Which toolkits and builds of cuDNN, NCCL and cuTENSOR conda-forge has, and which CUDA versions they go with.

The facts are data: `variants/libraries.yaml`, held by `variants/libraries.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from feedstock_tools.data import data_folder
from feedstock_tools.facts.cuda import Source
from feedstock_tools.facts.schema import read_document

__all__ = ["LibraryBuild", "LibraryFacts", "ToolkitPackage", "load_libraries"]


@dataclass(frozen=True, slots=True)
class LibraryBuild:
    """One version of a library with the CUDA versions it was built with and those that it goes with.

    `cuda` is a version specification of conda, such as `11.*`; `commit` (of `date`) is where the recipe says so.
    """

    library: str
    version: str
    cuda: str
    built: tuple[str, ...]
    platforms: tuple[str, ...]
    date: str
    commit: str
    source: Source


@dataclass(frozen=True, slots=True)
class ToolkitPackage:
    """A toolkit that conda-forge has, as `cudatoolkit` or `cuda-nvcc`, and the platforms that it has it for."""

    cuda: str
    package: str
    platforms: tuple[str, ...]
    date: str
    commit: str
    source: Source


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """All of `variants/libraries.yaml`, in the order of the file (oldest first)."""

    builds: tuple[LibraryBuild, ...]
    toolkits: tuple[ToolkitPackage, ...]
    sources: Mapping[str, Source]

    @property
    def libraries(self) -> tuple[str, ...]:
        """The names of the libraries: `cudnn`, `nccl`, `cutensor`."""
        return tuple(dict.fromkeys(build.library for build in self.builds))


def load_libraries(path: Path | None = None) -> LibraryFacts:
    """The facts of `path`, by default of the `variants/libraries.yaml` that ships with this package (read once).

    Raises:
        InputError: the file breaks its schema; all mistakes, each with line and column.
    """
    return _load(path or data_folder("variants") / "libraries.yaml")


@lru_cache(maxsize=4)
def _load(path: Path) -> LibraryFacts:
    document = read_document(path, data_folder("variants") / "libraries.schema.json")
    sources = {name: Source(name, entry["title"], entry["url"]) for name, entry in document["sources"].items()}
    builds = tuple(
        LibraryBuild(
            library=library,
            version=row["version"],
            cuda=row["cuda"],
            built=tuple(row["built"]),
            platforms=tuple(row["platforms"]),
            date=row["date"],
            commit=row["commit"],
            source=sources[entry["source"]],
        )
        for library, entry in document["libraries"].items()
        for row in entry["builds"]
    )
    toolkits = tuple(
        ToolkitPackage(
            cuda=row["cuda"],
            package=row["package"],
            platforms=tuple(row["platforms"]),
            date=row["date"],
            commit=row["commit"],
            source=sources[f"{row['package']}-feedstock"],
        )
        for row in document["toolkits"]
    )
    return LibraryFacts(builds, toolkits, MappingProxyType(sources))
