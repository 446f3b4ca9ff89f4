"""Lists of GPU architectures as recipes and build systems write them.

What an item means differs: `80` is machine code and PTX for CMake, machine code alone for GROMACS; `8.0` is machine
code for PyTorch, machine code and PTX for TensorFlow. Each form names the file of the build system that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from feedstock_tools.errors import InputError
from feedstock_tools.gpu_code.architecture import Architecture

#: How a list is read:
#: `cmake`: a bare number is machine code and PTX (CMake's CUDA_ARCHITECTURES);
#: `torch`: an item is machine code, with `+PTX` also PTX (torch/utils/cpp_extension.py, FindCUDA);
#: `tensorflow`: `sm_80` is machine code, `compute_80` and `8.0` are both (third_party/gpus/cuda_configure.bzl);
#: `newest`: the build system adds PTX of the newest item, unless items say by themselves what they are (MAGMA's
#: GPU_TARGET, bitsandbytes' COMPUTE_CAPABILITY, flash-attention's FLASH_ATTN_CUDA_ARCHS);
#: `machine` and `ptx`: only that (GROMACS' GMX_CUDA_TARGET_SM and _COMPUTE, OpenCV's CUDA_ARCH_BIN and _PTX).
Form = Literal["cmake", "torch", "tensorflow", "newest", "machine", "ptx"]

_BY_FORM: Mapping[Form, tuple[str, ...]] = {
    "cmake": (
        "CMAKE_CUDA_ARCHITECTURES",
        "CMAKE_CUDA_ARCHS",
        "CUDAARCHS",
        "CUDA_ARCHITECTURES",
        "CUTLASS_NVCC_ARCHS",
        "NVTE_CUDA_ARCHS",
        "cuda_architectures",
    ),
    "torch": ("AER_CUDA_ARCH", "AMReX_CUDA_ARCH", "CF_TORCH_CUDA_ARCH_LIST", "TORCH_CUDA_ARCH_LIST"),
    "tensorflow": ("--cuda_compute_capabilities", "HERMETIC_CUDA_COMPUTE_CAPABILITIES", "TF_CUDA_COMPUTE_CAPABILITIES"),
    "newest": ("--with-cuda-arch", "COMPUTE_CAPABILITY", "CUDA_ARCH_LIST", "FLASH_ATTN_CUDA_ARCHS", "GPU_TARGET"),
    "machine": ("CUDA_ARCH_BIN", "GMX_CUDA_TARGET_SM"),
    "ptx": ("CUDA_ARCH_PTX", "GMX_CUDA_TARGET_COMPUTE"),
}
#: The variables that hold lists in recipes and scripts, with their forms.
VARIABLES: Mapping[str, Form] = MappingProxyType({name: form for form, names in _BY_FORM.items() for name in names})
#: Pairs of variables that a build system adds up: one for machine code, one for PTX.
COMPANIONS: Mapping[str, str] = MappingProxyType(
    {"CUDA_ARCH_PTX": "CUDA_ARCH_BIN", "GMX_CUDA_TARGET_COMPUTE": "GMX_CUDA_TARGET_SM"}
)
#: Keys of a configuration with such a list, named like the build systems' variables.
ARCHITECTURE_KEYS = (
    "CMAKE_CUDA_ARCHITECTURES",
    "CUDAARCHS",
    "CUDA_ARCHITECTURES",
    "TF_CUDA_COMPUTE_CAPABILITIES",
    "TORCH_CUDA_ARCH_LIST",
    "cuda_architectures",
)

_NAMED = re.compile(r"(sm|compute)_(\d{2,3})([af]?)")
_DOTTED = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")
_PLAIN = re.compile(r"(\d{2,3})([af]?)(-real|-virtual)?")
#: Names of generations that PyTorch and FindCUDA take, with what they stand for (torch/utils/cpp_extension.py).
_GENERATIONS = {
    "kepler": "3.5+PTX",
    "kepler+tesla": "3.7",
    "maxwell": "5.0;5.2+PTX",
    "maxwell+tegra": "5.3",
    "pascal": "6.0;6.1+PTX",
    "volta": "7.0+PTX",
    "volta+tegra": "7.2",
    "turing": "7.5+PTX",
    "ampere": "8.0;8.6+PTX",
    "ampere+tegra": "8.7",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0;12.0+PTX",
}
#: Words for "the GPU of this machine": CMake's and nvcc's `native`, FindCUDA's and MAGMA's `Auto`.
_NATIVE = frozenset({"native", "auto"})
_KOKKOS = r"Kokkos_ARCH_(?:KEPLER|MAXWELL|PASCAL|VOLTA|TURING|AMPERE|ADA|HOPPER|BLACKWELL)\d{2,3}"
#: Arguments that are lists without `-D`: of a script that adds it (build.py --cmake_extra_defines), of configure.
_ARGUMENTS = ("CMAKE_CUDA_ARCHITECTURES", "--with-cuda-arch", "--cuda_compute_capabilities")
_OPTION = re.compile(
    r"(?<![\w-])--?(?P<name>gencode|generate-code|arch|gpu-architecture|code|gpu-code)[= ]\s*+"
    r"(?P<value>(?:arch=)?\\?['\"]?(?:(?:sm|compute|lto)_\w+|native|all-major|all)[^\s]*|\[[^\]]*\])"
)
_CODES = re.compile(r"(sm|compute)_(\d{2,3})([af]?)\b")


def form_of(variable: str) -> Form:
    """How the list of a variable is read; of an unknown one, as its items say."""
    return VARIABLES.get(variable, "torch")


def read_list(text: str, form: Form = "torch") -> tuple[Architecture, ...]:
    """The architectures of a list, in its order.

    Items may be `sm_80` and `compute_80`, `8.0` and `8.0+PTX`, `75-real`, `75-virtual` and `75`, or generations of
    GPUs (`Volta`). A bare number is machine code and PTX unless the form says otherwise.

    >>> [str(architecture) for architecture in read_list("75-real;80")]
    ['sm_75', 'sm_80', 'compute_80']
    """
    architectures: list[Architecture] = []
    bare = False
    for item in re.split(r"[\s,;]+", text.strip()):
        for part in _GENERATIONS.get(item.lower(), item).split(";"):
            read = _read_item(part, form)
            bare = bare or not (part.startswith("compute_") or part.endswith(("+PTX", "-real", "-virtual")))
            architectures += read
    if form == "newest" and bare:
        newest = max(architectures, key=lambda architecture: architecture.number)
        architectures.append(Architecture(newest.number, newest.suffix, ptx=True))
    return tuple(dict.fromkeys(architectures))


def _read_item(item: str, form: Form) -> list[Architecture]:
    if match := _NAMED.fullmatch(item):
        kinds = {"sm": (False,), "compute": (False, True) if form == "tensorflow" else (True,)}[match[1]]
        number, suffix = match[2], match[3]
    elif match := _DOTTED.fullmatch(item):
        both = match[4] or form == "tensorflow"
        kinds = (True,) if form == "ptx" else (False, True) if both else (False,)
        number, suffix = match[1] + match[2], match[3]
    elif match := _PLAIN.fullmatch(item):
        bare = {"machine": (False,), "newest": (False,), "ptx": (True,)}.get(form, (False, True))
        kinds = {"-real": (False,), "-virtual": (True,)}.get(match[3] or "", bare)
        number, suffix = match[1], match[2]
    else:
        raise InputError(f"'{item}' is not a GPU architecture")
    return [Architecture(int(number), suffix, ptx) for ptx in kinds]


def is_native(text: str) -> bool:
    """Whether a list means the GPU of the machine that builds."""
    return text.strip().lower() in _NATIVE


def kokkos_architecture(variable: str, text: str) -> tuple[Architecture, ...]:
    """What an option of Kokkos compiles for: it passes `-arch=sm_80`, which is machine code and PTX; else nothing.

    (Kokkos' cmake/kokkos_arch.cmake.)
    """
    if re.fullmatch(_KOKKOS, variable) is None or text.strip().upper() not in ("ON", "TRUE", "YES", "1"):
        return ()
    number = int(re.sub(r"\D", "", variable))
    return (Architecture(number), Architecture(number, ptx=True))


def argument_pattern(value: str) -> re.Pattern[str]:
    """Arguments of a command that set a list, as `-DCUDAARCHS=80`: groups `defined` or `plain`, and `value`.

    Args:
        value: the regular expression of a value in the language of the script.
    """
    names = "|".join(sorted(re.escape(name) for name in VARIABLES if not name.startswith("-")))
    plain = "|".join(map(re.escape, _ARGUMENTS))
    return re.compile(
        rf"(?:-D\s?(?P<defined>{names}|{_KOKKOS})|(?:(?<=[\s\"'(])|^)(?P<plain>{plain}))(?::\w+)?=(?P<value>{value})"
    )


def options_in(text: str) -> tuple[tuple[Architecture, ...], bool]:
    """What nvcc's own options in a text compile for, and whether they mean the GPU of the machine that builds.

    `-arch=sm_80` without `-code` is machine code and PTX (nvcc's documentation, "--gpu-architecture"); `all` and
    `all-major` are left out, since they are right for every toolkit.
    """
    with_ptx: list[Architecture] = []
    codes: list[Architecture] = []
    native = False
    options: Sequence[re.Match[str]] = list(_OPTION.finditer(text))
    for option in options:
        value = option["value"]
        native = native or value.strip("'\"\\") == "native"
        if option["name"] in ("gencode", "generate-code"):
            value = value.partition("code=")[2]
            codes += _architectures_in(value)
        elif option["name"] in ("code", "gpu-code"):
            codes += _architectures_in(value)
        else:
            named = _architectures_in(value)
            with_ptx += [Architecture(each.number, each.suffix, ptx) for each in named for ptx in (each.ptx, True)]
    with_code = any(option["name"] in ("code", "gpu-code") for option in options)
    return tuple(dict.fromkeys([*([] if with_code else with_ptx), *codes])), native


def options_of(text: str) -> str:
    """nvcc's own options in a command, without the rest of it; empty where there are none."""
    return " ".join(option[0] for option in _OPTION.finditer(text))


def _architectures_in(text: str) -> list[Architecture]:
    return [Architecture(int(match[2]), match[3], match[1] == "compute") for match in _CODES.finditer(text)]


#: The mistake of compiling for the GPU of the machine that builds.
NATIVE = "it compiles for the GPU of the machine that builds: the build fails without one, and other GPUs get no code"
