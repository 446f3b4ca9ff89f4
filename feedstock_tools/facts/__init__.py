"""Facts with their sources, read from the data that ships with the package."""

from feedstock_tools.facts.cuda import CudaFacts, PinningRow, Preset, Source, Toolkit, load_cuda

__all__ = ["CudaFacts", "PinningRow", "Preset", "Source", "Toolkit", "load_cuda"]
