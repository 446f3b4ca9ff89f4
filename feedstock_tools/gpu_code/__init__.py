"""GPU code in built files: which architectures are there, and whether they are those that were promised."""
