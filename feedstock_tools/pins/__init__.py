"""Which CUDA, cuDNN, NCCL, compiler, driver and GPU go together, as a graph that can be queried."""
