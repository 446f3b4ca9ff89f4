"""The list of GPU architectures for a toolkit, in the form of each build system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, Toolkit
from feedstock_tools.facts.gpus import Gpu, load_gpus
from feedstock_tools.gpu_code.architecture import Architecture, Service, parse_architectures, service_of


@dataclass(frozen=True, slots=True)
class ArchitectureList:
    """A list of architectures for a toolkit, with its preset."""

    toolkit: Toolkit
    preset: str
    architectures: tuple[Architecture, ...]
    gpus: tuple[Gpu, ...]

    def written(self, form: str) -> str:
        """The list in the form of a build system.

        Raises:
            InputError: the build system is unknown.
        """
        if form not in FORMS:
            raise InputError(f"unknown form '{form}'", hint=f"Known forms: {', '.join(FORMS)}.")
        variable, write = FORMS[form]
        return f"{variable}={write(self.architectures)}" if variable else write(self.architectures)

    def coverage(self) -> tuple[tuple[str, Service, tuple[Gpu, ...]], ...]:
        """How GPUs of each known capability run the build."""
        capabilities = dict.fromkeys(gpu.capability for gpu in self.gpus)
        return tuple(
            (
                capability,
                service_of(self.architectures, int(capability.replace(".", ""))),
                tuple(gpu for gpu in self.gpus if gpu.capability == capability),
            )
            for capability in capabilities
        )

    def numbers(self) -> frozenset[int]:
        """The capabilities that have machine code."""
        return frozenset(architecture.number for architecture in self.architectures if not architecture.ptx)


def architecture_list(facts: CudaFacts, cuda: str, preset: str) -> ArchitectureList:
    """The architectures of a preset for a CUDA version, given as `11.2` or `cuda=11.2`; `all`: every one that its nvcc
    knows.

    Raises:
        InputError: the version or preset is unknown, or the preset has an architecture unknown to this nvcc.
    """
    name, _, version = cuda.rpartition("=")
    if name not in ("", "cuda"):
        raise InputError(f"'{cuda}' is not a CUDA version", hint="Write cuda=11.2.")
    toolkit = facts.toolkit(version.strip())
    if preset == "all":
        plain = [capability for capability in toolkit.architectures if capability.isdigit()]
        names = (*(f"sm_{capability}" for capability in plain), f"compute_{plain[-1]}")
    else:
        names = facts.preset(preset, version.strip())
    refused = toolkit.refused(names)
    if refused:
        raise InputError(f"nvcc of CUDA {toolkit.version} does not know {', '.join(refused)}")
    return ArchitectureList(toolkit, preset, parse_architectures(names), load_gpus().gpus)


def _tensorflow(architectures: Sequence[Architecture]) -> str:
    """In the form of TensorFlow's configure: `sm_75,compute_80` (third_party/gpus/cuda_configure.bzl)."""
    return ",".join(str(architecture) for architecture in architectures)


def _pytorch(architectures: Sequence[Architecture]) -> str:
    """In the form of torch/utils/cpp_extension.py and cmake/Modules_CUDA_fix: `7.5;8.0+PTX`."""
    ptx = {architecture.dotted for architecture in architectures if architecture.ptx}
    names = dict.fromkeys(architecture.dotted for architecture in architectures)
    return ";".join(f"{name}+PTX" if name in ptx else name for name in names)


def _cmake(architectures: Sequence[Architecture]) -> str:
    """In the form of CMake's CUDA_ARCHITECTURES (CMake 3.18 and later): `75-real;86` is both kinds of 86."""
    kinds: dict[str, set[bool]] = {}
    for architecture in architectures:
        kinds.setdefault(f"{architecture.number}{architecture.suffix}", set()).add(architecture.ptx)
    endings = {frozenset({False}): "-real", frozenset({True}): "-virtual", frozenset({False, True}): ""}
    return ";".join(f"{name}{endings[frozenset(both)]}" for name, both in kinds.items())


def _nvcc(architectures: Sequence[Architecture]) -> str:
    """nvcc's own options, one for each kind of code."""
    return " ".join(f"-gencode=arch=compute_{a.number}{a.suffix},code={a}" for a in architectures)


#: The variable of a build system, and the form of its list.
FORMS: MappingProxyType[str, tuple[str, Callable[[Sequence[Architecture]], str]]] = MappingProxyType(
    {
        "nvcc": ("", _nvcc),
        "cmake": ("CMAKE_CUDA_ARCHITECTURES", _cmake),
        "pytorch": ("TORCH_CUDA_ARCH_LIST", _pytorch),
        "tensorflow": ("TF_CUDA_COMPUTE_CAPABILITIES", _tensorflow),
    }
)
