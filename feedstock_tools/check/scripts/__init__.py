"""Build scripts, read for the GPU architectures that they compile for."""
