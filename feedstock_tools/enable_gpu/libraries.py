"""The packages of NVIDIA's libraries, as a recipe requires them in each era of conda-forge's CUDA packages.

Up to CUDA 11.8 one package, `cudatoolkit`, holds the whole toolkit, and nvcc's run export adds it; from 12.0 on each
library has a package with its headers (conda-forge's `cuda-feedstock`, `recipe/doc/recipe_guide.md`). cuDNN, NCCL and
the like have packages of their own in both eras.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from feedstock_tools.errors import InputError
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
