"""Notes beside an answer of the pin graph: what the bounds between releases do not say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.frameworks import load_wheels
from feedstock_tools.facts.gpus import find_gpu, load_gpus
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.pins.gpu.architectures import served
from feedstock_tools.versions import parse_version

if TYPE_CHECKING:
    from feedstock_tools.pins.graph.asking import Answer


def notes(answer: Answer) -> Iterator[str]:
    """The notes on an answer, each a sentence or two.

    Sources: NVIDIA, CUDA Compatibility (PTX needs a driver of its own CUDA version; cuda-compat is for data-centre GPUs
    and Jetson); ptxas of 12.8, 12.9 and 13.0 for the name of sm_110; NVIDIA's release notes of drivers.
    """
    yield from _renamed(answer)
    yield from _older_driver(answer)
    yield from _not_listed_yet(answer)
    yield from _forward(answer)
    yield from _in_wsl(answer)
    yield from _of_the_family(answer)
    yield from _on_pypi(answer)
    yield from _indexes(answer)


def _demanded(answer: Answer, kind: str) -> list[str]:
    return [demand.spec for demand in answer.demands if demand.kind == kind]


def _renamed(answer: Answer) -> Iterator[str]:
    """The architecture of Jetson Thor has one name up to CUDA 12.9, and another from 13.0 on."""
    for number, other, when in (("101", "110", "from CUDA 13.0 on"), ("110", "101", "in CUDA 12.8 and 12.9")):
        if number in _demanded(answer, "sm") and answer.conflict is not None:
            yield f"sm_{number} is called sm_{other} {when}."


def _older_driver(answer: Answer) -> Iterator[str]:
    """A driver of the same major version runs a toolkit's machine code, but not its PTX."""
    if not answer.sets or not _demanded(answer, "driver"):
        return
    chosen = answer.sets[0]
    cuda, runs = chosen.get("cuda"), chosen.get("__cuda")
    newest = load_cuda().newest_ptx(runs) if runs else None
    if cuda and newest and parse_version(newest) < parse_version(cuda):
        yield (
            f"driver {chosen['driver']} runs machine code of CUDA {cuda}, but compiles PTX of CUDA up to {newest} "
            f"only: builds without machine code for the GPU, and code that NVRTC of {cuda} generates, do not load."
        )


def _not_listed_yet(answer: Answer) -> Iterator[str]:
    """A driver may know the chip of a GPU before NVIDIA lists the GPU."""
    drivers = [text.strip("=<>").removesuffix(".*") for text in _demanded(answer, "driver")]
    for name in _demanded(answer, "gpu"):
        gpu = find_gpu(name, load_gpus())
        for driver in drivers:
            if gpu.listed and answer.sets and parse_version(driver) < parse_version(gpu.listed) and "." in driver:
                yield f"NVIDIA lists {gpu.name} from driver {gpu.listed} for Linux on."


def _forward(answer: Answer) -> Iterator[str]:
    """On data-centre GPUs a newer CUDA runs with an older driver, by the package cuda-compat; on others it does not."""
    if not {"driver", "cuda"} <= _in_conflict(answer) or "win-64" in _demanded(answer, "platform"):
        return
    for gpu in (find_gpu(name, load_gpus()) for name in _demanded(answer, "gpu")):
        if gpu.data_center:
            yield (
                f"{gpu.name} is a GPU for data centres: on Linux the package cuda-compat of the newer CUDA runs with "
                "older drivers, of the branches in NVIDIA's table "
                "(https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html)."
            )
        elif gpu.name.startswith(("GeForce", "TITAN")):
            yield f"the package cuda-compat does not help: it is for GPUs of data centres and Jetson, not {gpu.name}."


def _in_conflict(answer: Answer) -> set[str]:
    """The kinds of the demands that are incompatible, but for those that any version meets."""
    return {demand.kind for demand in answer.conflict.demands if demand.spec != "*"} if answer.conflict else set()


def _in_wsl(answer: Answer) -> Iterator[str]:
    """Packages for Linux with the driver of Windows (NVIDIA, CUDA on WSL User Guide)."""
    texts = [demand.text.rpartition("=")[2].strip().lower() for demand in answer.demands if demand.kind == "platform"]
    if answer.sets and {"wsl", "wsl2"} & {*texts}:
        toolkit = answer.facts.toolkits.get(answer.sets[0].get("cuda", ""))
        least = [toolkit.least_driver.windows if toolkit and toolkit.least_driver else None]
        least += [find_gpu(name, load_gpus()).least_driver(windows=True) for name in _demanded(answer, "gpu")]
        version = max((driver for driver in least if driver), key=parse_version, default=None)
        needed = f" ({version} or later)" if version else ""
        yield f"WSL 2 runs packages for linux-64 with the driver of Windows{needed}; install none in WSL itself."


def _of_the_family(answer: Answer) -> Iterator[str]:
    """A GPU runs code that a toolkit compiles for an older one, where the toolkit does not know it."""
    conflict = answer.conflict
    if conflict is None or not {"cuda"} < _in_conflict(answer) <= {"cuda", "gpu", "sm"}:
        return
    spec = next(demand.spec for demand in conflict.demands if demand.kind == "cuda")
    toolkits = [toolkit for version, toolkit in answer.facts.toolkits.items() if admits(spec, version)]
    for name in _demanded(answer, "gpu"):
        gpu = find_gpu(name, load_gpus())
        for toolkit in toolkits[-1:]:
            names = [number for number in toolkit.architectures if number.isdigit()]
            both = [Architecture(int(number), ptx=ptx) for number in names for ptx in (False, True)]
            service = served(both, int(gpu.capability.replace(".", "")))
            if service.by is None or gpu.tegra or service.by.number == int(gpu.capability.replace(".", "")):
                continue
            way = "natively" if service.how == "native" else "after the driver has compiled it at first start"
            yield f"{gpu.name} runs what CUDA {toolkit.version} compiles for {service.by}, {way}: {_ASK_GPU}."


_ASK_GPU = "`feedstock-tools gpu` says more"


def _on_pypi(answer: Answer) -> Iterator[str]:
    """A cuDNN that conda-forge never built may be a wheel on PyPI: those that frameworks ask for are known."""
    if answer.conflict is None or {demand.kind for demand in answer.conflict.demands} != {"cudnn"}:
        return
    spec = answer.conflict.demands[0].spec
    users: dict[str, list[str]] = {}
    for framework in ("torch", "tensorflow"):
        for wheels in load_wheels()[framework]:
            exact = re.fullmatch(r"==([\d.]+)", wheels.cudnn or "")
            major = (wheels.cuda or "").lstrip("=<>").split(".")[0]
            if exact and admits(spec, exact[1]):
                wheel = f"nvidia-cudnn-cu{major}=={exact[1]}"
                users.setdefault(wheel, []).append(f"{framework} {wheels.minor}")
    for wheel, names in users.items():
        yield f"PyPI has it as {wheel}, which the wheels of {', '.join(names)} bring along."


def _indexes(answer: Answer) -> Iterator[str]:
    """torch's wheels on PyPI are for one CUDA version; PyTorch has the same release for others elsewhere."""
    from_wheels = [kind for kind in ("torch", "pytorch") if answer.graph.origins.get(kind) == "cuda.yaml"]
    if {*from_wheels} & _in_conflict(answer) and {"cuda", "gpu", "sm"} & _in_conflict(answer):
        yield (
            "this is about torch's wheels on PyPI; PyTorch's own indexes and conda-forge have builds for other CUDA "
            "versions: `feedstock-tools env pytorch=VERSION --cuda VERSION`."
        )
