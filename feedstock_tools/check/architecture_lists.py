"""Lists of GPU architectures as recipes and build systems write them, and what they do to users: code that nvcc cannot
make, GPUs without code, code without GPUs.

What an item means differs: `80` is machine code and PTX for CMake, machine code alone for GROMACS; `8.0` is machine
code for PyTorch, machine code and PTX for TensorFlow. Each form names the file of the build system that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from feedstock_tools.check.findings import Weight
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import Toolkit
from feedstock_tools.facts.gpus import Gpu, load_gpus
from feedstock_tools.gpu_code.architecture import TEGRA, Architecture, service_of
from feedstock_tools.versions import parse_version

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

#: From this CUDA on the systems of Jetson modules use the ordinary packages for ARM (CUDA 13.0's release notes).
_UNIFIED_ARM = "13.0"


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a build serves: the users of a subdir, and whether those of Jetson's own system (None: it does not say)."""

    subdir: str
    is_tegra: bool | None = None

    def serves_jetson(self, toolkit: Toolkit) -> bool | None:
        """Whether Jetson modules run such builds; None if that is not known."""
        if self.subdir != "linux-aarch64":
            return False
        return True if parse_version(toolkit.version) >= parse_version(_UNIFIED_ARM) else self.is_tegra


def faults_of(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """Everything that is wrong with a list for a toolkit and an audience, with its weight."""
    yield from ((message, "mistake") for message in refused_by(toolkit, listed))
    yield from jetson_only(toolkit, listed, audience)
    yield from unserved_by(toolkit, listed, audience)


def refused_by(toolkit: Toolkit, listed: Iterable[Architecture]) -> Iterator[str]:
    """The architectures that the toolkit's nvcc does not compile for."""
    oldest = min(int(name) for name in toolkit.architectures if name.isdigit())
    for architecture in listed:
        if not toolkit.accepts(str(architecture)):
            verb = "has dropped" if architecture.number < oldest else "does not know"
            yield f"nvcc of CUDA {toolkit.version} {verb} {architecture}"


def dropped_by(toolkit: Toolkit, listed: Iterable[Architecture]) -> list[str]:
    """The architectures, machine code and PTX alike, that the toolkit's nvcc has dropped."""
    oldest = min(int(name) for name in toolkit.architectures if name.isdigit())
    return [f"sm_{number}" for number in sorted({each.number for each in listed}) if number < oldest]


def jetson_only(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """Machine code for Jetson modules where none of them runs the package.

    A mistake where desktop GPUs of that generation have no code, since theirs was meant; else a waste of space.
    """
    if audience.serves_jetson(toolkit) is not False:
        return
    numbers = sorted({each.number for each in listed if not each.ptx and each.number in TEGRA})
    if not numbers:
        return
    names = _listing([f"sm_{number}" for number in numbers])
    generations = {number // 10 for number in numbers}
    left = {
        capability: gpus
        for capability, gpus in _capabilities(toolkit, audience).items()
        if capability // 10 in generations and service_of(listed, capability).how == "no"
    }
    jetson = (
        f"{names} {'is' if len(numbers) == 1 else 'are'} for Jetson modules alone, which do not run {audience.subdir}"
    )
    if left:
        yield f"{jetson}; the desktop GPUs of these generations have no code: {_words(left)}", "mistake"
    else:
        yield f"{jetson}: it only makes the package larger", "remark"


def unserved_by(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """The GPUs that the list leaves without code that they run: newer ones, those in between, all but one family.

    That a list begins later than its toolkit is a choice, and no mistake.
    """
    if not listed:
        return
    capabilities = _capabilities(toolkit, audience)
    left = {capability: gpus for capability, gpus in capabilities.items() if service_of(listed, capability).how == "no"}
    forward = [each.number for each in listed if each.ptx and not each.suffix]
    machine = [each.number for each in listed if not each.ptx]
    oldest, newest = min(each.number for each in listed), max(each.number for each in listed)
    if not forward:
        newer = {capability: gpus for capability, gpus in left.items() if capability > newest}
        names = f" ({_words(newer)})" if newer else ""
        yield f"there is no PTX, so newer GPUs{names} cannot run it: add the newest as compute_{newest}", "mistake"
    elif machine and max(forward) < max(machine):
        message = f"the newest PTX is compute_{max(forward)}, older than the machine code for sm_{max(machine)}"
        yield message, "mistake"
    # `jetson_only` reports the GPUs that a number of Jetson's leaves out.
    mentioned = {each.number // 10 for each in listed if each.number in TEGRA and not audience.serves_jetson(toolkit)}
    between = {
        capability: gpus
        for capability, gpus in left.items()
        if oldest < capability < newest and capability // 10 not in mentioned and _compiles(toolkit, capability)
    }
    yield from _in_between(between, audience)
    alone = oldest == newest and oldest not in TEGRA and not any(each.suffix for each in listed)
    older = {cap: gpus for cap, gpus in left.items() if cap < oldest and str(cap) in toolkit.architectures}
    if alone and older and audience.serves_jetson(toolkit) is False:
        supported = f"{_words(older)}, which CUDA {toolkit.version} supports,"
        yield f"sm_{oldest} is the only architecture: {supported} get no code", "mistake"


def _in_between(holes: Mapping[int, tuple[Gpu, ...]], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """GPUs without code that are neither older nor newer than a list; for Jetson modules a remark, since few builds
    serve them, unless the build is for them alone."""
    desktop = {capability: gpus for capability, gpus in holes.items() if capability not in TEGRA}
    jetson = {capability: gpus for capability, gpus in holes.items() if capability in TEGRA}
    if desktop:
        yield f"there is code for older and for newer GPUs, but none for {_words(desktop)}", "mistake"
    if jetson:
        weight: Weight = "mistake" if audience.is_tegra else "remark"
        yield f"there is no code for {_words(jetson)}, which {audience.subdir} also serves", weight


def _compiles(toolkit: Toolkit, capability: int) -> bool:
    return any(Architecture(int(name)).runs_on(capability) for name in toolkit.architectures if name.isdigit())


def _capabilities(toolkit: Toolkit, audience: Audience) -> dict[int, tuple[Gpu, ...]]:
    """The capabilities of the GPUs that an audience may have, oldest first, with these GPUs."""
    jetson = audience.serves_jetson(toolkit) is True
    only_jetson = jetson and audience.is_tegra is True and parse_version(toolkit.version) < parse_version(_UNIFIED_ARM)
    found: dict[int, tuple[Gpu, ...]] = {}
    for gpu in load_gpus().gpus:
        if (jetson and gpu.jetson_has(toolkit.version)) if gpu.tegra else not only_jetson:
            capability = int(gpu.capability.replace(".", ""))
            found[capability] = (*found.get(capability, ()), gpu)
    return found


def _words(capabilities: Mapping[int, Sequence[Gpu]]) -> str:
    """GPUs with their capabilities: `Tesla V100 (7.0)`; of many, the first and the last."""
    words = [f"{gpus[0].name} ({gpus[0].capability})" for gpus in capabilities.values()]
    return f"{words[0]} to {words[-1]}" if len(words) > 5 else _listing(words)


def _listing(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
