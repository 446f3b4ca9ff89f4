"""Lists of GPU architectures as recipes and build systems write them."""

from __future__ import annotations

import re

from feedstock_tools.errors import InputError
from feedstock_tools.gpu_code.architecture import Architecture

__all__ = ["ARCHITECTURE_KEYS", "read_list"]

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


def read_list(text: str) -> tuple[Architecture, ...]:
    """The architectures of a list in any form, in its order.

    `sm_80,compute_80` as TensorFlow has it, `7.5;8.0+PTX` as PyTorch does (without `+PTX` machine code alone), and
    `75-real;80` as CMake does (without an ending machine code and PTX).

    Raises:
        InputError: an item has none of these forms.

    >>> [str(architecture) for architecture in read_list("75-real;80")]
    ['sm_75', 'sm_80', 'compute_80']
    """
    architectures: list[Architecture] = []
    for item in re.split(r"[\s,;]+", text.strip()):
        if match := _NAMED.fullmatch(item):
            architectures.append(Architecture(int(match[2]), match[3], match[1] == "compute"))
        elif match := _DOTTED.fullmatch(item):
            number = int(match[1] + match[2])
            architectures += [Architecture(number, match[3], ptx) for ptx in ((False, True) if match[4] else (False,))]
        elif match := _PLAIN.fullmatch(item):
            kinds = {"-real": (False,), "-virtual": (True,)}.get(match[3] or "", (False, True))
            architectures += [Architecture(int(match[1]), match[2], ptx) for ptx in kinds]
        else:
            raise InputError(f"'{item}' is not a GPU architecture")
    return tuple(architectures)
