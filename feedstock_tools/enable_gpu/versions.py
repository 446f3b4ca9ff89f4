"""The CUDA versions that a recipe will be built with: those of the pinning, and those that the feedstock adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.enable_gpu.libraries import FIRST_OF_COMPONENTS
from feedstock_tools.errors import InputError
from feedstock_tools.facts import load_cuda
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.versions import parse_version

_KEY = "cuda_compiler_version"
#: The folders of migrations beside the pinning: in its feedstock, and in its package.
_MIGRATIONS = ("migrations", "share/conda-forge/migrations")
_VERSION = re.compile(r"\d{1,2}\.\d{1,2}")


@dataclass(frozen=True, slots=True)
class CudaVersions:
    """CUDA versions, oldest first; `coming` are those that migrations of the pinning will add."""

    built: tuple[str, ...]
    coming: tuple[str, ...] = ()

    @property
    def old(self) -> tuple[str, ...]:
        """The versions with the package cudatoolkit, which has all libraries."""
        return tuple(version for version in self.built if not _is_new(version))

    @property
    def new(self) -> tuple[str, ...]:
        """The versions with a package for each library."""
        return tuple(version for version in self.built if _is_new(version))

    @property
    def known(self) -> tuple[str, ...]:
        """All versions, coming ones included, whose compilers the facts know."""
        toolkits = load_cuda().toolkits
        return tuple(sorted({*self.built, *self.coming} & toolkits.keys(), key=parse_version))


def cuda_versions(draft: Draft, pinning: Path | None) -> CudaVersions:
    """The CUDA versions of the pinning and of the feedstock's own migrations.

    Args:
        draft: the feedstock.
        pinning: the pinning's `conda_build_config.yaml`; None without a pinning: the facts have its last state.

    Raises:
        InputError: the pinning names no CUDA version, or a file cannot be read.
    """
    built: set[str] = set()
    coming: set[str] = set()
    if pinning is None:
        newest = max(load_cuda().rows, key=lambda row: parse_version(row.cuda or "0"))
        built.add(newest.cuda or "")
    else:
        built |= set(_listed(read_document(pinning, within=None)))
        if not built:
            raise InputError("names no CUDA version", path=pinning, hint="Expected conda-forge's pinning.")
        for folder in _MIGRATIONS:
            coming |= set(_migrated(pinning.parent / folder))
    for migration in draft.migrations:
        built |= set(_listed(migration))
    return CudaVersions(_sorted(built), _sorted(coming - built))


def _is_new(version: str) -> bool:
    return parse_version(version) >= parse_version(FIRST_OF_COMPONENTS)


def _sorted(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=parse_version))


def _listed(document: Document) -> Iterator[str]:
    """The versions in the lists of the key at the top of a file."""
    for entry in document.entries(_KEY):
        yield from (item.text for item in entry.value.items if _VERSION.fullmatch(item.text))


def _migrated(folder: Path) -> Iterator[str]:
    """The versions that unpaused migrations of the pinning add."""
    for path in sorted(folder.glob("*.y*ml")):
        if "cuda" not in path.stem:
            continue
        document = read_document(path, within=folder)
        paused = [entry.value.text for entry in document.entries("__migrator", "paused")]
        if "true" not in paused:
            yield from _listed(document)
