"""Facts about CUDA toolkits, conda-forge's pinning of them, and lists of GPU architectures.

The facts are data: `variants/cuda.yaml`; each names its source. `facts.models.CudaFile` is the form of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.facts.content import content_of
from feedstock_tools.facts.gpus import Gpu, find_gpu, load_gpus
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import minor_of, parse_version


@dataclass(frozen=True, slots=True)
class GoesWith:
    """The CUDA versions that builds of a library run with, by their run requirements.

    All three are version specifications of conda: `built` for the CUDA version that a build was made with, `versions`
    for the library, `cuda` for the versions it runs with, where `{built}` stands for the former. `commit` is the
    source, or `patch`, the patch of the channel's metadata that says so.
    """

    built: str
    cuda: str
    commit: str
    versions: str = "*"
    patch: str | None = None


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
    releases: tuple[LibraryRelease, ...]
    gpu_code: tuple[GpuCode, ...] = ()


_ARCHITECTURE = re.compile(r"^(sm|compute)_(\d+)([af]?)$")
#: The _MSC_VER of each Visual Studio: of its first and of its last release.
MSVC: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        2012: (1700, 1700),
        2013: (1800, 1800),
        2015: (1900, 1900),
        2017: (1910, 1916),
        2019: (1920, 1929),
        2022: (1930, 1944),
        2026: (1950, 1959),
    }
)
#: Architectures that nvcc never supported: GPUs of capability 2.1 run the PTX of 2.0.
_WITHOUT_PTX = "compute_21"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of facts: a page, a file, or a repository at a commit."""

    name: str
    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Drivers:
    """Driver versions by system; None where NVIDIA names none."""

    linux: str | None
    windows: str | None

    def on(self, *, windows: bool) -> str | None:
        return self.windows if windows else self.linux


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One CUDA toolkit by its minor version, as of its last release, which is what conda-forge has.

    `architectures` is the set that nvcc accepts, without the prefix `sm_` or `compute_`, by number: `35`, `90`, `90a`.
    `ptx` is the version of PTX (`8.5`) that it writes and reads; some minor versions share one.
    `era` says how conda-forge packages it: `cudatoolkit` (one runtime package, nvcc from the image) or `cuda-version`
    (components). Limits on host compilers are major versions, the newest that it accepts; `oldest_gcc` is the oldest
    that works according to its source, which nvcc does not check. `visual_studio` is the oldest and the newest year,
    and `newest_msvc` the newest _MSC_VER (1939 is 17.9 of 2022, 1944 its 17.14). `newest_conda_forge_gcc` is the newest
    GCC that conda-forge's packages accept, where they accept less than nvcc.
    `driver` is the one that its first release ships with, `least_driver` the minimum that runs its machine code.
    `compat_branches` are the driver branches that its package cuda-compat runs with, none where that is not known.
    `platforms` are those for which conda-forge has it. `sources` names the sources of each fact. An unknown fact is
    None.
    """

    version: str
    era: str
    architectures: tuple[str, ...]
    least_driver: Drivers | None
    sources: Mapping[str, tuple[str, ...]]
    ptx: str | None = None
    oldest_gcc: int | None = None
    newest_gcc: int | None = None
    newest_clang: int | None = None
    visual_studio: tuple[int, int] | None = None
    newest_msvc: int | None = None
    newest_conda_forge_gcc: int | None = None
    compat_branches: tuple[int, ...] = ()
    driver: Drivers | None = None
    platforms: tuple[str, ...] | None = None

    def accepts(self, architecture: str) -> bool:
        """Whether this nvcc compiles for `sm_86`, `compute_86`, `sm_90a`, …; False for anything but an architecture."""
        match = _ARCHITECTURE.match(architecture)
        if match is None or architecture == _WITHOUT_PTX:
            return False
        return match[2] + match[3] in self.architectures

    def takes_msvc(self, msvc: int) -> bool | None:
        """Whether this nvcc accepts a version of Microsoft's compiler, as _MSC_VER; None if that is not known."""
        if self.visual_studio is None:
            return None
        first, last = self.visual_studio
        return MSVC[first][0] <= msvc <= (self.newest_msvc or MSVC[last][1])

    def refused(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(architecture for architecture in architectures if not self.accepts(architecture))


@dataclass(frozen=True, slots=True)
class Preset:
    """A named list of architectures: either lists for some CUDA versions, or candidates for every version.

    Candidates that the toolkit accepts are included as machine code, and the last of them as PTX too.
    """

    name: str
    description: str
    source: str
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()

    def architectures(self, toolkit: Toolkit) -> tuple[str, ...]:
        """The list for a toolkit: `("sm_75", "sm_80", "compute_80")`.

        Raises:
            InputError: the preset has no list for this CUDA version.
        """
        if toolkit.version in self.lists:
            return self.lists[toolkit.version]
        kept = [name for name in self.candidates if name in toolkit.architectures]
        if not kept:
            versions = ", ".join(self.lists)
            raise InputError(
                f"the preset '{self.name}' has no architectures for CUDA {toolkit.version}", hint=f"It has {versions}."
            )
        return (*(f"sm_{name}" for name in kept), f"compute_{kept[-1]}")


@dataclass(frozen=True, slots=True)
class PinningRow:
    """The values of conda-forge's pinning for a platform and a CUDA version (None: CPU) at a commit.

    `values` has one value for each key, as in the variant file. `origin` is `pinning` or the migration that introduced
    the version; `added` are keys that the pinning of that day did not have yet, `note` explains them.
    """

    cuda: str | None
    platform: Platform
    commit: str
    date: str
    origin: str
    values: Mapping[str, str]
    added: tuple[str, ...] = ()
    note: str | None = None

    @property
    def name(self) -> str:
        """The name of the variant file: `linux_64_cuda11.2`, `osx_arm64_cpu`."""
        return f"{self.platform.name}_{'cpu' if self.cuda is None else 'cuda' + self.cuda}"


@dataclass(frozen=True, slots=True, eq=False)
class CudaFacts:
    """All of `variants/cuda.yaml`; `toolkits` and rows are in the order of versions.

    Facts are equal to themselves alone: to compare all that they hold would take longer than what is cached for them.
    """

    toolkits: Mapping[str, Toolkit]
    presets: Mapping[str, Preset]
    rows: tuple[PinningRow, ...]
    libraries: Mapping[str, Library]
    sources: Mapping[str, Source]
    pinning_repository: str

    @property
    def newest_date(self) -> str:
        """The day of the newest pinning in the facts, as 2026-10-30."""
        return max((row.date for row in self.rows), default="")

    def toolkit(self, version: str) -> Toolkit:
        """The toolkit of a version such as `11.2` (`11.2.1` is read as `11.2`).

        Raises:
            InputError: there are no facts about it.
        """
        minor = minor_of(version)
        if minor not in self.toolkits:
            raise InputError(
                f"unknown CUDA version {version}", hint=f"Known CUDA versions: {', '.join(self.toolkits)}."
            )
        return self.toolkits[minor]

    def preset(self, name: str, version: str) -> tuple[str, ...]:
        """The architectures of a named preset for a CUDA version, as nvcc's names, machine code first.

        Raises:
            InputError: the preset or the version is unknown, or the preset has no list for the version.
        """
        if name not in self.presets:
            near = get_close_matches(name, self.presets, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"There are {', '.join(self.presets)}."
            raise InputError(f"there is no preset '{name}' of architectures", hint=hint)
        return self.presets[name].architectures(self.toolkit(version))

    def newest_ptx(self, cuda: str) -> str:
        """The newest CUDA version whose PTX a driver for a CUDA version compiles.

        For 12.5 that is 12.6, since both have PTX 8.5; in general it is the version itself.
        """
        own = self.toolkits[cuda].ptx if cuda in self.toolkits else None
        return (
            cuda if own is None else [toolkit.version for toolkit in self.toolkits.values() if toolkit.ptx == own][-1]
        )

    def gpu(self, name: str) -> Gpu:
        """The GPU with a name such as `RTX 3080` or `NVIDIA A100-SXM4-80GB`; see `find_gpu`."""
        return find_gpu(name, load_gpus())

    def versions(self, platform: Platform) -> tuple[str, ...]:
        """The CUDA versions of the pinning and its migrations for a platform, oldest first."""
        return tuple(row.cuda for row in self.rows if row.platform == platform and row.cuda is not None)

    def pinning_row(self, version: str | None, platform: Platform) -> PinningRow:
        """The values of the last pinning that had a CUDA version (None: CPU) for a platform.

        Raises:
            InputError: conda-forge's pinning never had this version for the platform.
        """
        for row in self.rows:
            if row.platform == platform and row.cuda == version:
                return row
        builds = "CPU builds" if version is None else f"CUDA {version}"
        versions = ", ".join(self.versions(platform)) or "no CUDA version"
        raise InputError(f"conda-forge's pinning never had {builds} for {platform}", hint=f"It had: {versions}.")


@cache
def load_cuda() -> CudaFacts:
    document = content_of("cuda.yaml")
    toolkits = [_toolkit(version, entry) for version, entry in document["toolkits"].items()]
    rows = [PinningRow(**{**row, "platform": Platform.parse(row["platform"])}) for row in document["pinning"]["rows"]]
    return CudaFacts(
        toolkits=MappingProxyType(
            {toolkit.version: toolkit for toolkit in sorted(toolkits, key=lambda each: parse_version(each.version))}
        ),
        presets=MappingProxyType({name: Preset(name, **entry) for name, entry in document["presets"].items()}),
        rows=tuple(sorted(rows, key=lambda row: (row.platform, row.cuda is not None, parse_version(row.cuda or "0")))),
        libraries=MappingProxyType({name: _library(name, entry) for name, entry in document["libraries"].items()}),
        sources=MappingProxyType({name: Source(name, **entry) for name, entry in document["sources"].items()}),
        pinning_repository=document["pinning"]["repository"],
    )


def _toolkit(version: str, entry: Mapping[str, Any]) -> Toolkit:
    drivers = {key: Drivers(**entry[key]) for key in ("driver", "least_driver") if entry.get(key) is not None}
    return Toolkit(version, **{**entry, **drivers})


def _library(name: str, entry: Mapping[str, Any]) -> Library:
    return Library(
        name=name,
        repository=entry["repository"],
        goes_with=tuple(GoesWith(**bound) for bound in entry["goes_with"]),
        gpu_code=tuple(GpuCode(**code) for code in entry.get("gpu_code", ())),
        releases=tuple(LibraryRelease(**release) for release in entry["releases"]),
    )
