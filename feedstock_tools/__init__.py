"""Generate, rerender, check and build the CPU and GPU packages of a conda-forge feedstock."""

__version__ = "0.1.0"
