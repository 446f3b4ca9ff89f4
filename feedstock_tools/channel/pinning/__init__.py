"""conda-forge's global pinning: on this machine, and fetched from a channel."""
