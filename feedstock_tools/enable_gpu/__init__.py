"""A recipe for CPUs becomes one with CPU and CUDA builds.

The door of this product: everybody else imports from here. Import it where it is used, not at the top of a module that
every command loads.
"""

from feedstock_tools.enable_gpu.enabling import enable_gpu
from feedstock_tools.enable_gpu.inputs import GpuWishes

__all__ = ["GpuWishes", "enable_gpu"]
