"""What enabling CUDA starts from: the user's wishes, NVIDIA's packages, the CUDA versions, and the recipe's parts.

Up to CUDA 11.8 one package, `cudatoolkit`, holds the whole toolkit, and nvcc's run export adds it; from 12.0 on each
library has a package with its headers (conda-forge's `cuda-feedstock`, `recipe/doc/recipe_guide.md`). cuDNN, NCCL and
the like have packages of their own in both eras.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.lists import CUDA, versions_in
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.content import is_automatic
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.recipe.written.owners import Owner, outputs_of, recipe_of
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
        return component if _has_components(cuda) else TOOLKIT
    if name in _APART or _PACKAGE.fullmatch(name):
        return _APART.get(name, name)
    known = sorted({*_COMPONENTS, *_APART})
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Expected one of {', '.join(known)}, or a package's name."
    raise InputError(f"'{library}' is not a known library of CUDA", hint=hint)


_ARCHITECTURE = re.compile(r"(sm|compute)_\d{2,3}[af]?")
#: A CUDA version that every preset of today has, to check names with.
_RECENT = "12.9"
_Preferred = Literal["gpu", "cpu"]
_Means = Literal["build_number", "track_features", "both"]
_Guard = Literal["major", "minor", "any", "none"]


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
    prefer: _Preferred = "gpu"
    by: _Means = "build_number"
    guard: _Guard = "major"
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
        for value, kind in ((self.prefer, _Preferred), (self.by, _Means), (self.guard, _Guard)):
            if value not in get_args(kind):
                raise InputError(f"'{value}' is not one of {', '.join(get_args(kind))}")
        if self.listed_architectures is None:
            load_cuda().preset(self.architectures, _RECENT)

    @property
    def listed_architectures(self) -> tuple[str, ...] | None:
        """The architectures, if they are listed rather than named by a preset."""
        names = tuple(self.architectures.replace(" ", "").split(","))
        return names if all(_ARCHITECTURE.fullmatch(name) for name in names) else None


#: The folders of migrations beside the pinning: in its feedstock, and in its package.
_MIGRATIONS = ("migrations", "share/conda-forge/migrations")


@dataclass(frozen=True, slots=True)
class CudaVersions:
    """CUDA versions, oldest first; `coming` are those that migrations of the pinning will add."""

    built: tuple[str, ...]
    coming: tuple[str, ...] = ()

    @property
    def old(self) -> tuple[str, ...]:
        """The versions with the package cudatoolkit, which has all libraries."""
        return tuple(version for version in self.built if not _has_components(version))

    @property
    def new(self) -> tuple[str, ...]:
        """The versions with a package for each library."""
        return tuple(version for version in self.built if _has_components(version))

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
        built |= versions_in(read_document(pinning, within=None), CUDA.name)
        if not built:
            raise InputError("names no CUDA version", path=pinning, hint="Expected conda-forge's pinning.")
        for path in (path for name in _MIGRATIONS for path in (pinning.parent / name).glob("*cuda*.y*ml")):
            migration = read_document(path, within=path.parent)
            if not any(entry.value.text == "true" for entry in migration.entries("__migrator", "paused")):
                coming |= versions_in(migration, CUDA.name)
    for migration in draft.migrations:
        built |= versions_in(migration, CUDA.name)
    return CudaVersions(*(tuple(sorted(each, key=parse_version)) for each in (built, coming - built)))


def _has_components(version: str) -> bool:
    return parse_version(version) >= parse_version(FIRST_OF_COMPONENTS)


_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_CUDA = re.compile(r"""\bcuda_compiler_version\b|compiler\(\s*['"]cuda['"]""")


@dataclass(frozen=True, slots=True)
class GpuParts:
    """The parts of a recipe, by what enabling CUDA changes in them.

    `builders` compile CUDA code, `packages` hold it, and `followers` pin the build of one that does; `others` are the
    remaining outputs, which stay one build for all.
    """

    recipe: Owner
    builders: tuple[Owner, ...]
    packages: tuple[Owner, ...]
    followers: tuple[Owner, ...] = ()
    others: tuple[Owner, ...] = ()

    @property
    def varying(self) -> tuple[Owner, ...]:
        """All whose package has CPU and CUDA builds."""
        return (*self.packages, *self.followers)

    @property
    def has_outputs(self) -> bool:
        return self.packages != (self.recipe,)


def gpu_parts(draft: Draft, named: Sequence[str]) -> GpuParts:
    """Which parts of a recipe compile CUDA code and which packages hold it.

    Args:
        named: outputs that compile CUDA code; without them all that have a compiler.
    """
    _refuse_gpu(draft)
    document = draft.recipe
    recipe = recipe_of(document)
    if recipe is None or recipe.part.kind != "mapping":
        raise document.mistake("the recipe is empty")
    outputs = tuple(
        owner for owner in outputs_of(document) if owner.part.kind == "mapping" and "if" not in owner.part.members
    )
    if not outputs:
        return _of_one_package(recipe, named)
    builders = _builders(document, recipe, outputs, named)
    packages = [owner for owner in outputs if owner in builders and owner.kind == "output"]
    if not named and any(owner.kind != "output" for owner in builders):
        packages += _collecting(recipe, outputs, packages)
    followers = _followers(outputs, packages)
    others = [owner for owner in outputs if owner.kind == "output" and owner not in (*packages, *followers)]
    return GpuParts(recipe, builders, tuple(packages), followers, tuple(others))


def _refuse_gpu(draft: Draft) -> None:
    for name in (draft.recipe_path.relative_to(draft.folder).as_posix(), "recipe/conda_build_config.yaml"):
        document = draft.file(name)
        match = document and _CUDA.search(_COMMENT.sub(lambda comment: " " * len(comment[0]), document.text))
        if document and match:
            message = f"the recipe builds for CUDA already: it has '{match[0]}'"
            hint = "To build for one more version of CUDA: feedstock-tools edit add-cuda VERSION"
            raise InputError(message, path=document.path, line=document.line_of(match.start()), hint=hint)
    spec = draft.spec
    if spec is not None and is_automatic({entry.key: entry.value.text for entry in spec.entries("automatic")}):
        hint = "Add the section `cuda` to it and `compiler: cuda` to the outputs that compile CUDA code (docs/spec.md)."
        raise InputError("this spec makes GPU builds by its section `cuda`, not by an edit", path=spec.path, hint=hint)


def _of_one_package(recipe: Owner, named: Sequence[str]) -> GpuParts:
    unknown = next((name for name in named if name != recipe.name), None)
    if unknown is not None:
        raise recipe.document.mistake(f"the recipe has no output '{unknown}'", hint=f"It makes '{recipe.name}' alone.")
    if recipe.is_noarch:
        raise _noarch(recipe)
    if not recipe.compiles and not named:
        hint = f"If it compiles CUDA code nevertheless, name it: --of {recipe.name}"
        raise recipe.document.mistake("the recipe has no compiler, so there is nothing to compile for GPUs", hint=hint)
    return GpuParts(recipe, (recipe,), (recipe,))


def _noarch(owner: Owner) -> InputError:
    message = f"'{owner.name}' is noarch: one package for all platforms, with or without a GPU"
    return owner.document.mistake(message, owner.build, "Remove noarch first, if it compiles something.")


def _builders(document: Document, recipe: Owner, outputs: Sequence[Owner], named: Sequence[str]) -> tuple[Owner, ...]:
    candidates = (recipe, *outputs)
    if not named:
        builders = tuple(owner for owner in candidates if owner.compiles and not owner.is_noarch)
        if not builders:
            raise document.mistake("no output has a compiler", hint="Name those that compile CUDA code with --of.")
        return builders
    chosen = []
    for name in named:
        matching = [owner for owner in candidates if owner.name == name]
        if not matching:
            names = sorted({owner.name for owner in candidates})
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(names)}."
            raise document.mistake(f"the recipe has no output '{name}'", hint=hint)
        if matching[-1].is_noarch:
            raise _noarch(matching[-1])
        chosen += matching
    if recipe.compiles and recipe not in chosen:  # its outputs collect the files that it builds
        chosen = [recipe, *chosen]
    return tuple(chosen)


def _collecting(recipe: Owner, outputs: Sequence[Owner], packages: Sequence[Owner]) -> list[Owner]:
    """Outputs without a compiler that take files of the recipe's build or of a stage, and pin no other that does."""
    names = {owner.name for owner in (*packages, *(output for output in outputs if output.fills_its_package))}
    return [
        owner
        for owner in outputs
        if owner.kind == "output" and owner not in packages and not owner.compiles and not owner.is_noarch
        if (owner.fills_its_package and not owner.exact_pins & names) or owner.name == recipe.name
    ]


def _followers(outputs: Sequence[Owner], packages: Sequence[Owner]) -> tuple[Owner, ...]:
    """Outputs that pin the build of one with CUDA builds, or of another follower."""
    followers: list[Owner] = []
    varying = {owner.name for owner in packages}
    for _ in outputs:
        for owner in outputs:
            known = owner in packages or owner in followers
            if not known and owner.kind == "output" and not owner.is_noarch and owner.exact_pins & varying:
                followers.append(owner)
                varying.add(owner.name)
    return tuple(followers)
