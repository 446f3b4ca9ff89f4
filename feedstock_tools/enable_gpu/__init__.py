"""A recipe for CPUs becomes one with CPU and CUDA builds."""
