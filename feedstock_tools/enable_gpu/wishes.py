"""What CUDA builds must be like: the user's wishes, the packages of NVIDIA's libraries, and the CUDA versions.

Up to CUDA 11.8 one package, `cudatoolkit`, holds the whole toolkit, and nvcc's run export adds it; from 12.0 on each
library has a package with its headers (conda-forge's `cuda-feedstock`, `recipe/doc/recipe_guide.md`). cuDNN, NCCL and
the like have packages of their own in both eras.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from feedstock_tools.edit.draft import Draft
from feedstock_tools.errors import InputError
from feedstock_tools.facts import load_cuda
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.versions import parse_version

#: The first CUDA version whose libraries have packages of their own.
FIRST_OF_COMPONENTS = "12"
#: The package with all libraries of the toolkit before that.
TOOLKIT = "cudatoolkit"
#: Libraries of the toolkit, with the package of each from CUDA 12 on.
_COMPONENTS: Mapping[str, str] = MappingProxyType(
    {name: f"lib{name}-dev" for name in ("cublas", "cufft", "cufile", "curand", "cusolver", "cusparse", "npp")}
    | {name: f"lib{name}-dev" for name in ("nvfatbin", "nvjitlink", "nvjpeg", "nvptxcompiler")}
    | {name: f"cuda-{name}-dev" for name in ("cudart", "cupti", "driver", "nvml", "nvrtc", "nvtx")}
    | {"cccl": "cuda-cccl", "profiler": "cuda-profiler-api"}
)
#: Libraries that are released separately from the toolkit, under one name for all CUDA versions.
_APART: Mapping[str, str] = MappingProxyType(
    {
        "cudnn": "cudnn",
        "cudss": "libcudss-dev",
        "cusparselt": "cusparselt",
        "cutensor": "cutensor",
        "nccl": "nccl",
        "nvshmem": "libnvshmem-dev",
    }
)
_PACKAGE = re.compile(r"[a-z0-9_][a-z0-9_.]*(-[a-z0-9_.]+)+")


def package_of(library: str, cuda: str) -> str:
    """The package to require for a library with a CUDA version; any other name with a hyphen is a package already.

    >>> package_of("cublas", "12.9"), package_of("libcublas-dev", "11.8"), package_of("cudnn", "11.8")
    ('libcublas-dev', 'cudatoolkit', 'cudnn')

    Raises:
        InputError: the library is unknown.
    """
    name = library.lower()
    component = _COMPONENTS.get(name) or (name if name in _COMPONENTS.values() else None)
    if component is not None:
        return component if parse_version(cuda) >= parse_version(FIRST_OF_COMPONENTS) else TOOLKIT
    if name in _APART or _PACKAGE.fullmatch(name):
        return _APART.get(name, name)
    known = sorted({*_COMPONENTS, *_APART})
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Expected one of {', '.join(known)}, or a package's name."
    raise InputError(f"'{library}' is not a known library of CUDA", hint=hint)


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
        pinning: the pinning's `conda_build_config.yaml`; None without a pinning: the facts have its last state.
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
