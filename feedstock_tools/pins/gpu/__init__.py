"""GPUs, drivers and architectures: what runs where."""
