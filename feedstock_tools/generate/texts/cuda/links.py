"""What a build with CUDA asks for because of its version: `cuda-version` in `host`, and a driver that runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from feedstock_tools.conditions.tree import Condition, Name, VersionTest
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.cuda.facts import known_cuda_versions
from feedstock_tools.generate.texts.needs import CUDA, Need
from feedstock_tools.versions import parse_version

#: Packages of the toolkit and of the libraries on top of it, as conda-forge names them.
_LIBRARY = re.compile(
    r"cuda-(?!version$).*|cudatoolkit|cudnn|nccl|cutensor|cusparselt|nvtx-c"
    r"|lib(cublas|cudnn|cudss|cufft|cufile|curand|cusolver|cusparse|cutensor|npp|nvfatbin|nvjitlink|nvjpeg|nvptxcompiler)\b.*"
)
_WHY_VERSION = "Keeps the libraries that it links to at the CUDA version that it is named for."
_WHY_GUARD = "Keeps this build off machines whose driver is too old for it."


def links_cuda(needs: Iterable[Need]) -> bool:
    """Whether requirements have the compiler of CUDA or one of its libraries among them."""
    return any(
        (need.kind == "compiler" and need.value == "cuda") or _LIBRARY.fullmatch(need.package) is not None
        for need in needs
    )


def with_cuda_version(host: tuple[Need, ...], spec: Spec) -> tuple[Need, ...]:
    """The section `host` of something that links CUDA: from CUDA 12 on with `cuda-version`, unless it has it already.

    conda-forge's cuda-version holds all components of a toolkit at one version; without it a solver takes the newest
    that the compiler's bounds allow (README of cuda-version-feedstock).
    """
    builds = _builds_from("12", spec)
    if builds is None or any(need.package == "cuda-version" for need in host):
        return host
    need = Need("package", "cuda-version {cuda}.*", builds, _WHY_VERSION)
    first = next((at for at, other in enumerate(host) if other.condition == builds), len(host))
    return (*host[:first], need, *host[first:])


def guard(spec: Spec) -> tuple[Need, ...]:
    """The requirement of GPU builds on the driver, as `cuda: guard` has it.

    By major version a build runs on every driver of its major version from CUDA 11 on; older toolkits had no such
    promise (CUDA Compatibility, minor version compatibility), so they are guarded by minor version.
    """
    if spec.cuda is None or spec.cuda.guard == "none":
        return ()
    if spec.cuda.guard == "any":
        return (Need("package", "__cuda", CUDA, _WHY_GUARD),)
    compatible = _builds_from("11", spec) if spec.cuda.guard == "major" else None
    if compatible is None:
        return (Need("package", "__cuda >={cuda}", CUDA, _WHY_GUARD),)
    by_major = Need("package", "__cuda >={cuda_major}", compatible, _WHY_GUARD)
    if compatible == CUDA:
        return (by_major,)
    return (Need("package", "__cuda >={cuda}", VersionTest("cuda", "<", "11"), _WHY_GUARD), by_major)


def _builds_from(first: str, spec: Spec) -> Condition | None:
    """The builds with a CUDA version or a newer one: None where there are none, `cuda` where those are all.

    Every version of conda-forge's pinning counts as newer: it has had none below 11 since 2024, and cuda-version exists
    for 11 too.
    """
    if spec.cuda is None:
        return None
    versions = known_cuda_versions(spec)
    newer = [version for version in versions if parse_version(version) >= parse_version(first)]
    if not newer:
        return None
    everything = len(newer) == len(versions) or _is_open(spec)
    return Name("cuda") if everything else VersionTest("cuda", ">=", first)


def _is_open(spec: Spec) -> bool:
    """Whether conda-forge's pinning decides which CUDA versions there are."""
    cuda = spec.cuda
    return cuda is not None and spec.pinning == "conda-forge" and isinstance(cuda.versions, str)
