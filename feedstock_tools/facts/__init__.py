"""Facts about CUDA and packages: typed values read from `variants/cuda.yaml`, with their sources."""
