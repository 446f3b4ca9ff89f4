"""What of a spec's texts follows from CUDA: facts, links and architectures."""
