"""Facts with their sources, read from the data that ships with the package."""

from feedstock_tools.facts.cuda import (
    CudaFacts,
    GoesWith,
    Library,
    LibraryRelease,
    PinningRow,
    Preset,
    Source,
    Toolkit,
    load_cuda,
)
from feedstock_tools.facts.gpus import Gpu

__all__ = [
    "CudaFacts",
    "GoesWith",
    "Gpu",
    "Library",
    "LibraryRelease",
    "PinningRow",
    "Preset",
    "Source",
    "Toolkit",
    "load_cuda",
]
