"""Notes beside an answer of the pin graph: what the bounds between releases do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.gpus import find_gpu, load_gpus
from feedstock_tools.versions import parse_version

if TYPE_CHECKING:
    from feedstock_tools.pins.graph.asking import Answer

__all__ = ["notes"]


def notes(answer: Answer) -> Iterator[str]:
    """The notes on an answer, each a sentence or two.

    Sources: NVIDIA, CUDA Compatibility (PTX needs a driver of its own CUDA version; cuda-compat is for data-centre GPUs
    and Jetson); ptxas of 12.8, 12.9 and 13.0 for the name of sm_110; NVIDIA's release notes of drivers.
    """
    yield from _renamed(answer)
    yield from _older_driver(answer)
    yield from _not_listed_yet(answer)
    yield from _forward(answer)


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
    """On data-centre GPUs a newer CUDA runs with an older driver, by the package cuda-compat."""
    gpus = [find_gpu(name, load_gpus()) for name in _demanded(answer, "gpu")]
    conflict = {demand.kind for demand in answer.conflict.demands if demand.spec != "*"} if answer.conflict else set()
    if {"driver", "cuda"} <= conflict and any(gpu.data_center for gpu in gpus):
        yield "on data-centre GPUs the package cuda-compat brings a newer CUDA along for an older driver branch."
